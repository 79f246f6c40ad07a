#pragma once
/// The caller of next() does the work.

#include <memory>

#include "worker/loop.h"
#include "worker/pool.h"

namespace infeed {

class InlinePool final : public WorkerPool {
 public:
  /// Runs worker_init here and now; its exception is a failed start of claimant 0.
  InlinePool(const PoolOptions& options, Ring& ring, const Arena& arena, const WorkPlan& plan);

  void notify(int /*runs*/) override {}
  void notify_claimant(int /*claimant*/) override {}
  bool help() override { return loop_ && loop_->step(); }
  [[nodiscard]] std::span<const int> death_fds() const override { return {}; }
  [[nodiscard]] std::vector<Death> reap() override { return {}; }
  void restart(int /*worker_id*/) override {}
  void kill(int /*worker_id*/) override {}
  void resize(int /*num_workers*/) override {}
  [[nodiscard]] int num_workers() const override { return 0; }
  [[nodiscard]] pid_t pid(int /*worker_id*/) const override { return 0; }
  [[nodiscard]] std::vector<pid_t> pids() const override { return {}; }
  void abandon_in_child() noexcept override {}

 private:
  std::unique_ptr<WorkerLoop> loop_;  ///< null: worker_init failed
};

}  // namespace infeed
