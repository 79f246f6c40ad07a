#pragma once
/// Counts what LoaderStats tells.

#include <chrono>
#include <cstdint>
#include <vector>

#include "infeed/loader/stats.h"
#include "ring/ring.h"

namespace infeed {

/// Threads: under the engine's stats_mutex_.
class Recorder {
 public:
  using Clock = std::chrono::steady_clock;

  Recorder() : made_(Clock::now()) {}

  void next_called() noexcept;
  void waited(Clock::duration time) noexcept { waited_ += time; }
  void handed_out(std::int64_t samples, bool private_copy) noexcept;
  void faulty(const RowReport& report, std::int64_t replaced_by, const std::string& description);
  void restarted(int worker_id);

  /// Starts counting anew; `now` holds the workers' counters as they stand.
  void reset(std::vector<ClaimantStats> now);
  /// Fills all but memory and the workers' processes. `now` has a record per claimant.
  void fill(LoaderStats& stats, const std::vector<ClaimantStats>& now, const std::vector<std::int64_t>& worker_pids,
            int threads_per_worker) const;

 private:
  static constexpr std::size_t kMaxFaulty = 1000;

  Clock::time_point made_;
  Clock::time_point first_next_{};
  Clock::time_point last_next_{};
  bool started_ = false;
  double first_batch_ms_ = 0;
  Clock::duration waited_{};
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
