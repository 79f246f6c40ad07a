#include "worker/fork.h"

#include <fmt/format.h>

#include "infeed/base/log.h"

namespace infeed {

Process ForkLauncher::launch(int worker_id, int num_workers, const std::vector<int>& pool_fds) {
  if (zygote_) {
    if (std::optional<Process> worker = zygote_->launch(worker_id, num_workers)) return std::move(*worker);
    log(LogLevel::kWarning, fmt::format("process {} (infeed:zygote), which restarts workers, does not answer: it was "
                                        "killed or stopped from outside. Its workers end; this process forks now.",
                                        zygote_->pid()));
    zygote_.reset();
  }
  int error = 0;
  Process worker = fork_process(
      pool_fds,
      [&] {
        settle_();
        return worker_main_(worker_id, num_workers);
      },
      error);
  if (!worker.exists())
    throw_cannot_start(fmt::format("worker {} of {} could not be forked", worker_id, num_workers), error);
  return worker;
}

void ForkLauncher::prepare_restarts(const std::vector<int>& pool_fds) {
  zygote_ = std::make_unique<Zygote>(worker_main_, settle_, pool_fds, answer_ms_);
}

std::optional<ProcessExit> ForkLauncher::status(pid_t pid) { return zygote_ ? zygote_->status(pid) : std::nullopt; }

void ForkLauncher::abandon() noexcept {
  if (zygote_) zygote_->abandon();
}

}  // namespace infeed
