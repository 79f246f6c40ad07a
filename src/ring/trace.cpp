#include <algorithm>

#include "ring/ring.h"

// A trace is a ring of records for each claimant, written by it alone. It never waits for the reader: who is too slow
// loses the oldest records, and knows how many.

namespace infeed {

void Ring::set_tracing(bool on) noexcept { bytes_.header().tracing.store(on ? 1 : 0, std::memory_order_relaxed); }
bool Ring::tracing() const noexcept { return bytes_.header().tracing.load(std::memory_order_relaxed) != 0; }

void Ring::note_claim(int claimant, std::uint64_t claimed_ns) noexcept {
  bytes_.claimant(claimant).claimed_ns.store(claimed_ns, std::memory_order_relaxed);
}

void Ring::trace_run(int claimant, const RunTrace& run) noexcept {
  std::atomic<std::uint64_t>& written = bytes_.claimant(claimant).traced;
  const std::uint64_t number = written.load(std::memory_order_relaxed);  // ours alone
  const std::uint64_t words[] = {
      run.begin_ns,  run.end_ns,       run.seq,        run.read_ns,
      run.decode_ns, run.transform_ns, run.collate_ns, std::uint64_t{run.rows} << 32 | run.thread};
  TraceRecord& record = bytes_.trace(claimant, number);
  for (std::size_t i = 0; i < std::size(words); ++i) record.words[i].store(words[i], std::memory_order_relaxed);
  written.store(number + 1, std::memory_order_release);  // [traced]
}

std::uint64_t Ring::read_trace(int claimant, std::uint64_t& seen, std::vector<RunTrace>& runs) const {
  const std::atomic<std::uint64_t>& written = bytes_.claimant(claimant).traced;
  const std::uint64_t end = written.load(std::memory_order_acquire);  // pairs with [traced]
  const std::uint64_t kept = std::min<std::uint64_t>(end, kTraceRecords);
  const std::uint64_t begin = std::max(std::min(seen, end), end - kept);
  const std::size_t before = runs.size();
  for (std::uint64_t number = begin; number < end; ++number) {
    std::uint64_t words[8];
    const TraceRecord& record = bytes_.trace(claimant, number);
    for (std::size_t i = 0; i < std::size(words); ++i)
      words[i] = record.words[i].load(std::memory_order_acquire);  // before [again]
    runs.push_back({.begin_ns = words[0],
                    .end_ns = words[1],
                    .seq = words[2],
                    .read_ns = words[3],
                    .decode_ns = words[4],
                    .transform_ns = words[5],
                    .collate_ns = words[6],
                    .rows = static_cast<std::uint32_t>(words[7] >> 32),
                    .thread = static_cast<std::uint32_t>(words[7])});
  }
  // What was written meanwhile lies over the oldest of them; the record being written counts as well.
  const std::uint64_t now = written.load(std::memory_order_relaxed);  // [again]
  const std::uint64_t whole = now + 1 > kTraceRecords ? now + 1 - kTraceRecords : 0;
  const std::uint64_t torn = now == end ? 0 : std::min(std::max(whole, begin) - begin, end - begin);
  runs.erase(runs.begin() + static_cast<std::ptrdiff_t>(before),
             runs.begin() + static_cast<std::ptrdiff_t>(before + torn));
  const std::uint64_t lost = begin - std::min(seen, begin) + torn;
  seen = end;
  return lost;
}

}  // namespace infeed
