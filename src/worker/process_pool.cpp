#include "worker/process_pool.h"

#include <unistd.h>

#include <utility>

#include "base/check.h"
#include "infeed/base/log.h"
#include "worker/parent_guard.h"

namespace infeed {
namespace {

constexpr int kLeaveMs = 2000;  // to finish the sample in hand; a stopped or stuck worker is killed after

}  // namespace

ProcessPool::ProcessPool(const PoolOptions& options, Ring& ring, const WorkPlan& plan,
                         std::unique_ptr<Launcher> launcher)
    : ring_(ring),
      launcher_(std::move(launcher)),
      num_workers_(options.num_workers),
      threads_per_worker_(options.threads_per_worker),
      any_claimant_(plan.any_claimant),
      owner_(::getpid()) {}

ProcessPool::~ProcessPool() {
  if (::getpid() != owner_) {  // the copy that a child of the user's fork has
    abandon_in_child();
    return;
  }
  ring_.request_stop();
  if (!roster_.stop_all(kLeaveMs))
    log(LogLevel::kWarning,
        "a worker process did not end within seconds of SIGKILL: the kernel holds it, probably in "
        "a file system that hangs.");
}

void ProcessPool::launch_all() {
  for (int id = 0; id < num_workers_; ++id) launch(id);
  launcher_->prepare_restarts(roster_.fds());
}

void ProcessPool::launch(int worker_id) {
  retire(worker_id, false);
  roster_.start(worker_id, launcher_->launch(worker_id, num_workers_, roster_.fds()));
}

void ProcessPool::notify(int runs) { ring_.ring_workers(!any_claimant_, runs); }

void ProcessPool::notify_claimant(int claimant) { ring_.ring_claimant(claimant); }

std::vector<Death> ProcessPool::reap() {
  std::vector<int> again;
  std::vector<Death> deaths = roster_.collect(*launcher_, again);
  for (const int id : again) {
    if (id < num_workers_) launch(id);
  }
  return deaths;
}

void ProcessPool::restart(int worker_id) {
  if (worker_id >= num_workers_) return;  // it was leaving when it died
  INFEED_CHECK(!roster_.occupied(worker_id), "worker {} is restarted while process {} works", worker_id,
               roster_.pid(worker_id));
  launch(worker_id);
}

void ProcessPool::kill(int worker_id) { roster_.kill(worker_id, *launcher_); }

void ProcessPool::resize(int num_workers) {
  for (int id = num_workers; id < num_workers_; ++id) {
    retire(id, true);
    roster_.ask_to_leave(id);
  }
  if (num_workers < num_workers_) {
    num_workers_ = num_workers;
    ring_.ring_workers(true);
  }
  while (num_workers_ < num_workers) add_worker();
}

void ProcessPool::add_worker() {
  const int id = num_workers_++;
  try {
    if (!roster_.occupied(id)) return launch(id);
    retire(id, false);
    roster_.recall(id);
  } catch (...) {
    --num_workers_;
    throw;
  }
}

std::vector<pid_t> ProcessPool::pids() const {
  std::vector<pid_t> pids = roster_.pids();
  if (const pid_t own = launcher_->own_pid(); own != 0) pids.push_back(own);
  return pids;
}

void ProcessPool::abandon_in_child() noexcept {
  owner_ = 0;
  roster_.forget();
  launcher_->abandon();
}

void ProcessPool::retire(int worker_id, bool leave) noexcept {
  for (int thread = 0; thread < threads_per_worker_; ++thread)
    ring_.retire(worker_id * threads_per_worker_ + thread, leave);
}

}  // namespace infeed
