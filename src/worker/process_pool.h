#pragma once
/// A pool whose workers are processes, whichever way they are launched.

#include <memory>
#include <vector>

#include "worker/deaths.h"
#include "worker/launcher.h"
#include "worker/pool.h"

namespace infeed {

class ProcessPool final : public WorkerPool {
 public:
  /// Starts nothing yet.
  ProcessPool(const PoolOptions& options, Ring& ring, const WorkPlan& plan, std::unique_ptr<Launcher> launcher);
  ~ProcessPool() override;

  /// Starts the workers. Throws MemoryError; those that were started are the destructor's to stop.
  void launch_all();

  void notify(int runs) override;
  void notify_claimant(int claimant) override;
  bool help() override { return false; }
  [[nodiscard]] std::span<const int> death_fds() const override { return roster_.fds(); }
  [[nodiscard]] std::vector<Death> reap() override;
  void restart(int worker_id) override;
  void kill(int worker_id) override;
  void resize(int num_workers) override;
  [[nodiscard]] int num_workers() const override { return num_workers_; }
  [[nodiscard]] pid_t pid(int worker_id) const override { return roster_.pid(worker_id); }
  [[nodiscard]] std::vector<pid_t> pids() const override;
  void abandon_in_child() noexcept override;

 private:
  void launch(int worker_id);
  void add_worker();
  void retire(int worker_id, bool leave) noexcept;

  Ring& ring_;
  std::unique_ptr<Launcher> launcher_;
  Roster roster_;
  int num_workers_;
  int threads_per_worker_;
  bool any_claimant_;
  pid_t owner_;  ///< the process that started the workers
};

}  // namespace infeed
