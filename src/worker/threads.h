#pragma once
/// Workers as tasks in a oneTBB arena.

#include <memory>

#include "worker/pool.h"

namespace infeed {

/// A worker is a seat, not a thread: when work is armed, one task for each seat that has none is given to the arena; it
/// works until there is nothing to claim, and ends. Nobody blocks inside oneTBB, so one of its threads can serve all
/// seats in turn where the user allows no more (global_control). Without such a limit each seat gets a thread, however
/// few CPUs there are.
///
/// A worker's name, CPU and worker_init belong to its seat; thread-local state that worker_init makes may be met by
/// another worker's task. The name stays on a thread until the pool ends.
class ThreadPool final : public WorkerPool {
 public:
  ThreadPool(const PoolOptions& options, Ring& ring, const Arena& arena, const WorkPlan& plan);
  /// Waits for the samples in hand, however long: a thread cannot be killed. Warns after 2 s.
  ~ThreadPool() override;

  void notify(int runs) override;
  void notify_claimant(int claimant) override;
  bool help() override { return false; }
  [[nodiscard]] std::span<const int> death_fds() const override { return {}; }
  [[nodiscard]] std::vector<Death> reap() override { return {}; }
  void restart(int /*worker_id*/) override {}
  void kill(int /*worker_id*/) override {}
  void resize(int num_workers) override;
  [[nodiscard]] int num_workers() const override;
  [[nodiscard]] pid_t pid(int /*worker_id*/) const override { return 0; }
  [[nodiscard]] std::vector<pid_t> pids() const override { return {}; }
  void abandon_in_child() noexcept override;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace infeed
