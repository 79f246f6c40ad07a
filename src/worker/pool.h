#pragma once
/// The workers of one loader: one interface, four kinds. Used by the consumer's thread only.

#include <sys/types.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "infeed/loader/options.h"
#include "memory/arena.h"
#include "ring/ring.h"
#include "worker/plan.h"

namespace infeed {

inline constexpr int kMaxWorkers = 64;

/// A worker process that ended without being asked to.
struct Death {
  int worker_id = 0;
  pid_t pid = 0;
  int signal = 0;  ///< 0: it exited
  int exit_code = 0;
};

struct PoolOptions {
  WorkerKind kind = WorkerKind::kInline;  ///< never kAuto
  int num_workers = 0;
  int threads_per_worker = 1;
  int spin_us = 0;
  int ready_eventfd = -1;  ///< borrowed
  int answer_ms = 5000;    ///< a process that forks workers and is silent for so long is given up
  std::function<void(const WorkerInfo&)> worker_init;
  std::string worker_init_name;
  std::vector<int> cpu_affinity;
  std::string worker_executable;
};

/// Worker w has the claimants [w * threads_per_worker, (w + 1) * threads_per_worker). One that cannot start leaves the
/// reason in Ring::start_failure of the first of them, rings the consumer, and is a Death where it is a process.
class WorkerPool {
 public:
  /// Starts the workers. `ring`, `arena` and what `plan` points to outlive the pool. Throws ConfigError (no spec, no
  /// executable), MemoryError (no process, descriptor or memory to be had).
  [[nodiscard]] static std::unique_ptr<WorkerPool> start(const PoolOptions& options, Ring& ring, const Arena& arena,
                                                         const WorkPlan& plan);
  /// Asks everyone to stop, waits a bounded time (2 s), kills what is left, reaps all.
  virtual ~WorkerPool();

  /// Armed work is there: `runs` of it. Wakes who sleeps: everyone, or as many as there are runs if
  /// WorkPlan::any_claimant.
  virtual void notify(int runs) = 0;
  /// A run was armed for this claimant alone. Instead of notify().
  virtual void notify_claimant(int claimant) = 0;
  /// Inline: does one run in the caller, true if there was one. Other kinds: false.
  virtual bool help() = 0;
  /// Descriptors that become readable when a worker process dies; to poll beside the doorbell.
  [[nodiscard]] virtual std::span<const int> death_fds() const = 0;
  /// Workers found dead since the last call, each once, surely dead: their claims may be buried. Those asked to leave
  /// are not listed (but their claims are already safe).
  [[nodiscard]] virtual std::vector<Death> reap() = 0;
  /// Replaces dead worker `worker_id`. Call after its claims were buried. Does nothing for one that died while leaving.
  virtual void restart(int worker_id) = 0;
  /// Kills worker `worker_id` (SIGKILL) and returns when it is surely dead; it is then not listed by reap().
  virtual void kill(int worker_id) = 0;
  /// Adds workers at the end, or asks the last ones to leave (they finish the run in hand; this does not wait for
  /// them). Runs that are assigned to those who leave, and not started, are the caller's to reassign. Inline: nothing.
  virtual void resize(int num_workers) = 0;
  [[nodiscard]] virtual int num_workers() const = 0;
  /// Process of a worker; 0 for threads and inline.
  [[nodiscard]] virtual pid_t pid(int worker_id) const = 0;
  /// All live processes of this pool (workers and zygote), for memory accounts.
  [[nodiscard]] virtual std::vector<pid_t> pids() const = 0;
  /// After the user's fork, in the child: forget everything without touching processes or shared memory.
  virtual void abandon_in_child() noexcept = 0;
};

}  // namespace infeed
