#pragma once
/// Names of threads that infeed borrows from oneTBB.

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace infeed {

/// Lends the names of a pool's workers to the threads that do their work; gives the old names back when destroyed.
/// Threads: any.
class ThreadNames {
 public:
  ThreadNames();
  ~ThreadNames();
  ThreadNames(const ThreadNames&) = delete;
  ThreadNames& operator=(const ThreadNames&) = delete;

  /// Names the calling thread after the worker. Cheap where it has that name.
  void lend(int worker_id);

 private:
  std::uint64_t pool_;  ///< never used again in this process
  std::mutex mutex_;
  std::vector<std::pair<pid_t, std::string>> before_;  ///< thread id, its own name
};

}  // namespace infeed
