#pragma once
/// Workers forked from the consumer, later ones from a zygote.

#include <functional>
#include <memory>

#include "worker/launcher.h"
#include "worker/zygote.h"

namespace infeed {

/// The first workers are the consumer's own children: their first batch does not wait for the zygote. Should the zygote
/// be killed, its workers end with it (and are replaced), and the consumer forks again itself.
class ForkLauncher final : public Launcher {
 public:
  /// `settle` runs first in every child: it gives up what only the consumer needs.
  /// A zygote that is silent for `answer_ms` is given up.
  ForkLauncher(WorkerMain worker_main, std::function<void()> settle, int answer_ms)
      : worker_main_(std::move(worker_main)), settle_(std::move(settle)), answer_ms_(answer_ms) {}

  [[nodiscard]] Process launch(int worker_id, int num_workers, const std::vector<int>& pool_fds) override;
  void prepare_restarts(const std::vector<int>& pool_fds) override;
  [[nodiscard]] std::optional<ProcessExit> status(pid_t pid) override;
  [[nodiscard]] pid_t own_pid() const override { return zygote_ ? zygote_->pid() : 0; }
  void abandon() noexcept override;

 private:
  WorkerMain worker_main_;
  std::function<void()> settle_;
  int answer_ms_;
  std::unique_ptr<Zygote> zygote_;
};

}  // namespace infeed
