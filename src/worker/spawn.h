#pragma once
/// Workers spawned as new processes of infeed-worker.

#include <memory>
#include <string>
#include <vector>

#include "memory/arena.h"
#include "memory/memfd.h"
#include "worker/launcher.h"
#include "worker/plan.h"
#include "worker/pool.h"

namespace infeed {

/// posix_spawn neither copies the consumer's page tables nor runs in its memory: safe beside threads and CUDA, and its
/// time does not depend on the consumer's size.
class SpawnLauncher final : public Launcher {
 public:
  /// Throws ConfigError for what cannot cross to another process, and where there is no infeed-worker.
  SpawnLauncher(const PoolOptions& options, const Arena& arena, const WorkPlan& plan);

  [[nodiscard]] Process launch(int worker_id, int num_workers, const std::vector<int>& pool_fds) override;
  void prepare_restarts(const std::vector<int>& /*pool_fds*/) override {}
  [[nodiscard]] std::optional<ProcessExit> status(pid_t /*pid*/) override { return std::nullopt; }
  [[nodiscard]] pid_t own_pid() const override { return 0; }
  void abandon() noexcept override {}

 private:
  std::string executable_;
  std::vector<int> inherited_;  ///< descriptor i becomes kBootFd + i
  Memfd boot_;
};

}  // namespace infeed
