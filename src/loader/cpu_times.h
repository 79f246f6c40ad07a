#pragma once
/// What the kernel tells of a thread: how long it ran, and how long it was ready to run but had no processor.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <vector>

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

/// The letter of /proc/PID/stat: R, S, D, T (stopped), t (traced), Z; 0 where there is none.
[[nodiscard]] char process_state(std::int64_t pid);

}  // namespace infeed
