#include "loader/recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

namespace infeed {
namespace {

double seconds(Recorder::Clock::duration time) { return std::chrono::duration<double>(time).count(); }
double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

// The counters of `now` since `base`.
ClaimantStats since(const ClaimantStats& now, const ClaimantStats& base) {
  ClaimantStats delta = now;
  delta.rows -= base.rows;
  delta.runs -= base.runs;
  delta.read_ns -= base.read_ns;
  delta.decode_ns -= base.decode_ns;
  delta.transform_ns -= base.transform_ns;
  delta.bytes_read -= base.bytes_read;
  delta.busy_ns -= base.busy_ns;
  delta.wait_ns -= base.wait_ns;
  return delta;
}

}  // namespace

void Recorder::next_called() noexcept {
  last_next_ = Clock::now();
  if (!started_) first_next_ = last_next_;
  started_ = true;
}

void Recorder::handed_out(std::int64_t samples, bool private_copy) noexcept {
  const auto now = Clock::now();
  if (batches_ == 0 && first_batch_ms_ == 0) first_batch_ms_ = seconds(now - made_) * 1e3;
  last_next_ = now;
  ++batches_;
  samples_ += static_cast<std::uint64_t>(samples);
  private_copies_ += private_copy ? 1 : 0;
}

void Recorder::faulty(const RowReport& report, std::int64_t replaced_by, const std::string& description) {
  const bool replaced = report.fault == RowFault::kReplaced;
  ++(replaced ? replaced_ : skipped_);
  if (faulty_.size() >= kMaxFaulty) return;
  const std::string reason = description.empty() ? report.text : fmt::format("{}: {}", description, report.text);
  faulty_.push_back({.index = report.index, .replaced_by = replaced ? replaced_by : -1, .reason = reason});
}

void Recorder::restarted(int worker_id) {
  ++restarts_;
  if (std::cmp_less_equal(restarts_of_.size(), worker_id))
    restarts_of_.resize(static_cast<std::size_t>(worker_id) + 1, 0);
  ++restarts_of_[static_cast<std::size_t>(worker_id)];
}

void Recorder::reset(std::vector<ClaimantStats> now) {
  base_ = std::move(now);
  started_ = false;
  waited_ = {};
  batches_ = samples_ = skipped_ = replaced_ = 0;
  private_copies_ = restarts_ = 0;
  std::fill(restarts_of_.begin(), restarts_of_.end(), 0);
  faulty_.clear();
}

void Recorder::fill(LoaderStats& stats, const std::vector<ClaimantStats>& now,
                    const std::vector<std::int64_t>& worker_pids, int threads_per_worker) const {
  stats.batches = batches_;
  stats.samples = samples_;
  stats.elapsed_s = started_ ? seconds(last_next_ - first_next_) : 0;
  stats.samples_per_s = stats.elapsed_s > 0 ? static_cast<double>(samples_) / stats.elapsed_s : 0;
  stats.first_batch_ms = first_batch_ms_;
  stats.starved_share = stats.elapsed_s > 0 ? std::min(1.0, seconds(waited_) / stats.elapsed_s) : 0;
  stats.private_copies = private_copies_;
  stats.restarts = restarts_;
  stats.skipped = skipped_;
  stats.replaced = replaced_;
  stats.faulty = faulty_;

  ClaimantStats total;
  stats.workers.resize(worker_pids.size());
  for (std::size_t i = 0; i < stats.workers.size(); ++i) {
    stats.workers[i].id = static_cast<int>(i);
    stats.workers[i].pid = worker_pids[i];
  }
  for (std::size_t claimant = 0; claimant < now.size(); ++claimant) {
    const ClaimantStats delta = since(now[claimant], claimant < base_.size() ? base_[claimant] : ClaimantStats{});
    total.rows += delta.rows;
    total.read_ns += delta.read_ns;
    total.decode_ns += delta.decode_ns;
    total.transform_ns += delta.transform_ns;
    total.bytes_read += delta.bytes_read;
    total.busy_ns += delta.busy_ns;
    total.wait_ns += delta.wait_ns;
    const std::size_t id = claimant / static_cast<std::size_t>(threads_per_worker);
    if (id >= stats.workers.size()) continue;
    WorkerStats& worker = stats.workers[id];
    worker.samples += delta.rows;
    worker.busy_s += seconds(delta.busy_ns);
    worker.wait_s += seconds(delta.wait_ns);
    if (id < restarts_of_.size()) worker.restarts = restarts_of_[id];
  }
  const double rows = total.rows > 0 ? static_cast<double>(total.rows) : 1;
  stats.read_us = static_cast<double>(total.read_ns) * 1e-3 / rows;
  stats.decode_us = static_cast<double>(total.decode_ns) * 1e-3 / rows;
  stats.transform_us = static_cast<double>(total.transform_ns) * 1e-3 / rows;
  const std::uint64_t staged = total.read_ns + total.decode_ns + total.transform_ns;
  stats.other_us = static_cast<double>(total.busy_ns > staged ? total.busy_ns - staged : 0) * 1e-3 / rows;
  stats.bytes_read = total.bytes_read;
  const double worked = static_cast<double>(total.busy_ns) + static_cast<double>(total.wait_ns);
  stats.blocked_share = worked > 0 ? static_cast<double>(total.wait_ns) / worked : 0;
}

std::uint64_t read_pss(const std::vector<std::int64_t>& pids) {
  std::uint64_t total = 0;
  for (const std::int64_t pid : pids) {
    std::ifstream file(fmt::format("/proc/{}/smaps_rollup", pid));
    std::string word;
    while (file >> word) {
      std::uint64_t kib = 0;
      if (word == "Pss:" && file >> kib) {
        total += kib * 1024;
        break;
      }
    }
  }
  return total;
}

std::string LoaderStats::str() const {
  std::string text = fmt::format(
      "{} batches, {} samples in {:.2f} s: {:.0f} samples/s; first batch after {:.1f} ms\n"
      "waiting: next() for data {:.1f} %, workers for room {:.1f} %\n"
      "per sample: read {:.1f} us, decode {:.1f} us, transform {:.1f} us, other {:.1f} us\n"
      "memory: {:.1f} MiB in all (PSS), {:.1f} MiB of it for batches; {} held by the user, {} handed out as copies\n"
      "faults: {} restarts, {} samples skipped, {} replaced\n",
      batches, samples, elapsed_s, samples_per_s, first_batch_ms, starved_share * 100, blocked_share * 100, read_us,
      decode_us, transform_us, other_us, static_cast<double>(pss_bytes) / (1 << 20),
      static_cast<double>(arena_bytes) / (1 << 20), batches_held, private_copies, restarts, skipped, replaced);
  text += "worker       pid    samples     busy s     wait s  restarts\n";
  for (const WorkerStats& worker : workers)
    text += fmt::format("{:>6} {:>9} {:>10} {:>10.2f} {:>10.2f} {:>9}\n", worker.id, worker.pid, worker.samples,
                        worker.busy_s, worker.wait_s, worker.restarts);
  return text;
}

}  // namespace infeed
