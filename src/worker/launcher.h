#pragma once
/// How worker processes come to be: forked (fork.h) or spawned (spawn.h).

#include <memory>
#include <optional>
#include <vector>

#include "worker/process.h"

namespace infeed {

/// Threads: the consumer's.
class Launcher {
 public:
  virtual ~Launcher() = default;
  /// A new worker process. `pool_fds`: what it must not keep open of this pool. Throws MemoryError.
  [[nodiscard]] virtual Process launch(int worker_id, int num_workers, const std::vector<int>& pool_fds) = 0;
  /// The first workers were launched: time for what only later ones need. Throws MemoryError.
  virtual void prepare_restarts(const std::vector<int>& pool_fds) = 0;
  /// How a dead worker ended that is not this process's child; collects it.
  [[nodiscard]] virtual std::optional<ProcessExit> status(pid_t pid) = 0;
  /// A process of the launcher's own; 0: none.
  [[nodiscard]] virtual pid_t own_pid() const = 0;
  /// In a child of the user's fork: forgets processes without touching them.
  virtual void abandon() noexcept = 0;
};

}  // namespace infeed
