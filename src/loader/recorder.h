#pragma once
/// Counts what LoaderStats tells.

#include <chrono>
#include <cstdint>
#include <vector>

#include "infeed/loader/stats.h"
#include "loader/cpu_times.h"
#include "loader/turn_clock.h"
#include "ring/ring.h"

namespace infeed {

/// Threads: under the engine's stats_mutex_.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  Recorder() : made_(Clock::now()) {}

  [[nodiscard]] TurnClock& turns() noexcept { return turns_; }
  /// The thread that calls next(): whose queueing for a processor is told.
  void called_by(pid_t thread);
  /// Memory, not the depth, bounded what is in flight as a batch was handed out.
  void short_of_memory() noexcept { ++short_batches_; }
  void handed_out(std::int64_t samples, bool private_copy) noexcept;
  void faulty(const RowReport& report, std::int64_t replaced_by, const std::string& description);
  void restarted(int worker_id);

  /// The workers are there: their processors' time counts from here.
  void started(const std::vector<std::int64_t>& worker_pids) { workers_cpu_.start(worker_pids); }
  /// Starts counting anew; `now` holds the workers' counters as they stand.
  void reset(std::vector<ClaimantStats> now, const std::vector<std::int64_t>& worker_pids);
  /// Fills all but memory and the workers' processes. `now` has a record per claimant.
  void fill(LoaderStats& stats, const std::vector<ClaimantStats>& now, const std::vector<std::int64_t>& worker_pids,
            int threads_per_worker) const;

 private:
  static constexpr std::size_t kMaxFaulty = 1000;

  /// Returns the sums over all claimants.
  ClaimantStats fill_workers(LoaderStats& stats, const std::vector<ClaimantStats>& now,
                             const std::vector<std::int64_t>& worker_pids, int threads_per_worker) const;
  static void fill_stages(LoaderStats& stats, const ClaimantStats& total);

  Clock::time_point made_;
  double first_batch_ms_ = 0;
  TurnClock turns_;
  pid_t trainer_ = 0;
  CpuTimes trainer_base_;
  WorkerCpu workers_cpu_;
  std::uint64_t short_batches_ = 0;
  std::uint64_t batches_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t skipped_ = 0;
  std::uint64_t replaced_ = 0;
  int private_copies_ = 0;
  int restarts_ = 0;
  std::vector<int> restarts_of_;
  std::vector<FaultySample> faulty_;
  std::vector<ClaimantStats> base_;
};

/// Proportional set size of `pids`, bytes; 0 where /proc does not tell.
[[nodiscard]] std::uint64_t read_pss(const std::vector<std::int64_t>& pids);

}  // namespace infeed
