#pragma once
/// What the kernel tells of a thread: how long it ran, and how long it was ready to run but had no processor.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

#include "infeed/loader/stats.h"

namespace infeed {

struct CpuTimes {
  std::uint64_t run_ns = 0;
  std::uint64_t wait_ns = 0;  ///< ready, but no processor was free
  bool known = false;         ///< false where the kernel has no schedstat
};

[[nodiscard]] CpuTimes cpu_times_of_thread(pid_t thread);  ///< of this process

/// The threads of worker processes, or those of this process that are named as workers, since start().
class WorkerCpu {
 public:
  /// `pids`: of the workers; this process's own stands for thread workers.
  void start(const std::vector<std::int64_t>& pids);
  /// Threads that have ended count as nothing; those that came since then from their begin.
  [[nodiscard]] CpuTimes read(const std::vector<std::int64_t>& pids) const;

 private:
  std::map<pid_t, CpuTimes> base_;  ///< by thread
};

/// Fills the shares of `stats` that tell of processors, where they are known: of the workers' `busy_ns`, and of elapsed_s
/// how long the trainer queued for one. `trainer_base`: the trainer's times as they were at first.
void fill_cpu_shares(LoaderStats& stats, const CpuTimes& workers, std::uint64_t busy_ns, const CpuTimes& trainer,
                     const CpuTimes& trainer_base);

/// Whether a signal or a debugger has stopped the process.
[[nodiscard]] bool is_stopped(std::int64_t pid);

/// How long a worker has had what it claimed at `claimed_ns` (0: nothing), by monotonic_ns().
[[nodiscard]] double seconds_in_hand(std::uint64_t claimed_ns, std::uint64_t now_ns) noexcept;

}  // namespace infeed
