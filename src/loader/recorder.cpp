#include "loader/recorder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "base/clock.h"

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
  delta.collate_ns -= base.collate_ns;
  return delta;
}

}  // namespace

void Recorder::handed_out(std::int64_t samples, bool private_copy) noexcept {
  if (batches_ == 0 && first_batch_ms_ == 0) first_batch_ms_ = seconds(Clock::now() - made_) * 1e3;
  ++batches_;
  samples_ += static_cast<std::uint64_t>(samples);
  private_copies_ += private_copy ? 1 : 0;
}

void Recorder::called_by(pid_t thread) {
  if (thread == trainer_) return;
  trainer_ = thread;
  trainer_base_ = cpu_times_of_thread(thread);
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

void Recorder::reset(std::vector<ClaimantStats> now, const std::vector<std::int64_t>& worker_pids) {
  base_ = std::move(now);
  workers_cpu_.start(worker_pids);
  trainer_base_ = cpu_times_of_thread(trainer_);
  turns_.reset();
  short_batches_ = 0;
  batches_ = samples_ = skipped_ = replaced_ = 0;
  private_copies_ = restarts_ = 0;
  std::fill(restarts_of_.begin(), restarts_of_.end(), 0);
  faulty_.clear();
}

void Recorder::fill(LoaderStats& stats, const std::vector<ClaimantStats>& now,
                    const std::vector<std::int64_t>& worker_pids, int threads_per_worker) const {
  stats.batches = batches_;
  stats.samples = samples_;
  turns_.fill(stats);
  stats.samples_per_s = stats.elapsed_s > 0 ? static_cast<double>(samples_) / stats.elapsed_s : 0;
  stats.first_batch_ms = first_batch_ms_;
  if (batches_ > 0) stats.short_of_memory_share = static_cast<double>(short_batches_) / static_cast<double>(batches_);
  stats.private_copies = private_copies_;
  stats.restarts = restarts_;
  stats.skipped = skipped_;
  stats.replaced = replaced_;
  stats.faulty = faulty_;
  const ClaimantStats total = fill_workers(stats, now, worker_pids, threads_per_worker);
  fill_stages(stats, total);
  fill_cpu_shares(stats, workers_cpu_.read(worker_pids), total.busy_ns, cpu_times_of_thread(trainer_), trainer_base_);
}

ClaimantStats Recorder::fill_workers(LoaderStats& stats, const std::vector<ClaimantStats>& now,
                                     const std::vector<std::int64_t>& worker_pids, int threads_per_worker) const {
  const std::uint64_t now_ns = monotonic_ns();
  ClaimantStats total;
  stats.workers.resize(worker_pids.size());
  for (std::size_t i = 0; i < stats.workers.size(); ++i) {
    stats.workers[i].id = static_cast<int>(i);
    stats.workers[i].pid = worker_pids[i];
    stats.workers[i].stopped = worker_pids[i] != getpid() && is_stopped(worker_pids[i]);
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
    total.collate_ns += delta.collate_ns;
    const std::size_t id = claimant / static_cast<std::size_t>(threads_per_worker);
    if (id >= stats.workers.size()) continue;
    WorkerStats& worker = stats.workers[id];
    worker.samples += delta.rows;
    worker.busy_s += seconds(delta.busy_ns);
    worker.wait_s += seconds(delta.wait_ns);
    worker.in_hand_s = std::max(worker.in_hand_s, seconds_in_hand(delta.claimed_ns, now_ns));
    if (id < restarts_of_.size()) worker.restarts = restarts_of_[id];
  }
  return total;
}

void Recorder::fill_stages(LoaderStats& stats, const ClaimantStats& total) {
  const double rows = total.rows > 0 ? static_cast<double>(total.rows) : 1;
  stats.read_us = static_cast<double>(total.read_ns) * 1e-3 / rows;
  stats.decode_us = static_cast<double>(total.decode_ns) * 1e-3 / rows;
  stats.transform_us = static_cast<double>(total.transform_ns) * 1e-3 / rows;
  stats.collate_us = static_cast<double>(total.collate_ns) * 1e-3 / rows;
  const std::uint64_t staged = total.read_ns + total.decode_ns + total.transform_ns + total.collate_ns;
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

}  // namespace infeed
