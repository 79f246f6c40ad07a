#include <algorithm>
#include <cstring>

#include "ring/ring.h"

// What claimants tell: reports about rows, statistics, why they could not start.

namespace infeed {
namespace {

constexpr std::size_t kMaxStartText = sizeof(ClaimantWords::start_text);

/// Single writer: no read-modify-write needed.
void add(std::atomic<std::uint64_t>& counter, std::uint64_t delta) {
  if (delta != 0) counter.store(counter.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
}

std::uint64_t get(const std::atomic<std::uint64_t>& counter) { return counter.load(std::memory_order_relaxed); }

std::uint32_t copy_text(char* to, std::size_t room, std::string_view text) {
  const std::size_t length = std::min(room, text.size());
  std::memcpy(to, text.data(), length);
  return static_cast<std::uint32_t>(length);
}

bool is_sane(const ReportRecord& record, int rows, int num_claimants) {
  return record.fault >= 1 && record.fault <= 3 && record.row >= -1 && record.row < rows && record.claimant >= 0 &&
         record.claimant < num_claimants && record.text_length <= sizeof(record.text);
}

}  // namespace

void Ring::add_report(const Claim& claim, RowFault fault, int row, std::int64_t index, int error_code,
                      std::string_view text) noexcept {
  const std::uint32_t place = bytes_.head(claim.slot).num_reports.fetch_add(1, std::memory_order_relaxed);
  if (place >= static_cast<std::uint32_t>(bytes_.reports_per_slot())) return;
  ReportRecord& record = bytes_.report(claim.slot, static_cast<int>(place));
  record.index = index;
  record.row = row;
  record.run = claim.run;
  record.error_code = error_code;
  record.claimant = claim.claimant;
  record.fault = static_cast<std::uint32_t>(fault);
  record.text_length = copy_text(record.text, sizeof(record.text), text);
  record.seq.store(claim.seq, std::memory_order_release);  // [reported]
}

void Ring::collect_reports(int slot, SlotResult& result) const {
  const int room = bytes_.reports_per_slot();
  const auto places = static_cast<std::int64_t>(bytes_.head(slot).num_reports.load(std::memory_order_relaxed));
  result.reports_lost = static_cast<int>(std::clamp<std::int64_t>(places - room, 0, 1 << 30));
  const int rows = armed_[static_cast<std::size_t>(slot)].rows;
  for (int place = 0; place < std::min<std::int64_t>(places, room); ++place) {
    const ReportRecord& record = bytes_.report(slot, place);
    if (record.seq.load(std::memory_order_acquire) != result.seq) continue;  // pairs with [reported]
    if (!is_sane(record, rows, config_.max_claimants)) {
      ++result.reports_lost;
      continue;
    }
    result.reports.push_back({.fault = static_cast<RowFault>(record.fault),
                              .row = record.row,
                              .error_code = record.error_code,
                              .index = record.index,
                              .claimant = record.claimant,
                              .text = std::string(record.text, record.text_length)});
  }
}

/// The run will be filled again, and reported again.
void Ring::void_reports(int slot, int run) noexcept {
  const std::uint64_t seq = armed_[static_cast<std::size_t>(slot)].seq;
  const auto places = static_cast<std::int64_t>(bytes_.head(slot).num_reports.load(std::memory_order_relaxed));
  for (int place = 0; place < std::min<std::int64_t>(places, bytes_.reports_per_slot()); ++place) {
    ReportRecord& record = bytes_.report(slot, place);
    if (record.seq.load(std::memory_order_acquire) == seq && record.run == run) {  // pairs with [reported]
      record.seq.store(0, std::memory_order_relaxed);
    }
  }
}

void Ring::note_sample(int claimant, std::uint64_t number, std::int64_t index) noexcept {
  ClaimantWords& words = bytes_.claimant(claimant);
  words.batch.store(number, std::memory_order_relaxed);
  words.index.store(index, std::memory_order_relaxed);
}

void Ring::add_stats(int claimant, const ClaimantStats& delta) noexcept {
  ClaimantWords& words = bytes_.claimant(claimant);
  if (delta.pid != 0) words.pid.store(delta.pid, std::memory_order_relaxed);
  add(words.rows, delta.rows);
  add(words.runs, delta.runs);
  add(words.read_ns, delta.read_ns);
  add(words.decode_ns, delta.decode_ns);
  add(words.transform_ns, delta.transform_ns);
  add(words.bytes_read, delta.bytes_read);
  add(words.busy_ns, delta.busy_ns);
  add(words.wait_ns, delta.wait_ns);
  add(words.collate_ns, delta.collate_ns);
}

ClaimantStats Ring::stats(int claimant) const noexcept {
  const ClaimantWords& words = bytes_.claimant(claimant);
  return {.pid = words.pid.load(std::memory_order_relaxed),
          .batch = get(words.batch),
          .index = words.index.load(std::memory_order_relaxed),
          .rows = get(words.rows),
          .runs = get(words.runs),
          .read_ns = get(words.read_ns),
          .decode_ns = get(words.decode_ns),
          .transform_ns = get(words.transform_ns),
          .bytes_read = get(words.bytes_read),
          .busy_ns = get(words.busy_ns),
          .wait_ns = get(words.wait_ns),
          .init_error = static_cast<std::uint64_t>(start_error_code(claimant)),
          .collate_ns = get(words.collate_ns),
          .claimed_ns = get(words.claimed_ns)};
}

void Ring::fail_start(int claimant, int error_code, std::string_view text) noexcept {
  ClaimantWords& words = bytes_.claimant(claimant);
  words.start_text_length = copy_text(words.start_text, kMaxStartText, text);
  words.start_error.store(error_code, std::memory_order_release);  // [failed]
}

int Ring::start_error_code(int claimant) const noexcept {
  return bytes_.claimant(claimant).start_error.load(std::memory_order_acquire);  // pairs with [failed]
}

std::string Ring::start_failure(int claimant) const {
  if (start_error_code(claimant) == 0) return {};
  const ClaimantWords& words = bytes_.claimant(claimant);
  return std::string(words.start_text, std::min<std::size_t>(words.start_text_length, kMaxStartText));
}

}  // namespace infeed
