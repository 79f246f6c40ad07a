#include "worker/pool.h"

#include <fmt/format.h>

#include "base/check.h"
#include "infeed/base/error.h"
#include "worker/fork.h"
#include "worker/inline.h"
#include "worker/process.h"
#include "worker/process_pool.h"
#include "worker/spawn.h"
#include "worker/threads.h"
#include "worker/worker.h"

namespace infeed {
namespace {

void check(const PoolOptions& options, const Ring& ring, const WorkPlan& plan) {
  INFEED_CHECK((plan.dataset != nullptr) != (plan.stream != nullptr), "a plan needs a dataset or a stream");
  INFEED_CHECK((plan.collate != nullptr) != (plan.layout != nullptr), "a plan needs a collate or a layout");
  if (options.kind == WorkerKind::kInline) return;
  if (options.num_workers < 1 || options.num_workers > kMaxWorkers)
    throw ConfigError(fmt::format("num_workers is {}. Take 1 to {}.", options.num_workers, kMaxWorkers));
  if (options.threads_per_worker < 1)
    throw ConfigError(fmt::format("threads_per_worker is {}. Take 1 or more.", options.threads_per_worker));
  const int claimants = options.num_workers * options.threads_per_worker;
  if (claimants > ring.config().max_claimants)
    throw ConfigError(
        fmt::format("{} workers of {} threads are {} threads, more than the {} that the ring has room for. "
                    "Lower num_workers or threads_per_worker.",
                    options.num_workers, options.threads_per_worker, claimants, ring.config().max_claimants));
  check_affinity(options.cpu_affinity);
}

// In a forked worker, or the zygote: the consumer's objects as they were at the fork.
WorkerMain forked_worker(const PoolOptions& options, Ring& ring, const Arena& arena, const WorkPlan& plan) {
  return [options, &ring, &arena, &plan](int worker_id, int num_workers) {
    const auto& cpus = options.cpu_affinity;
    const WorkerSeat seat{.info = {.id = worker_id, .num_workers = num_workers, .seed = plan.seed},
                          .threads = options.threads_per_worker,
                          .spin_us = options.spin_us,
                          .ready_eventfd = options.ready_eventfd,
                          .cpu = cpus.empty() ? -1 : cpus[static_cast<std::size_t>(worker_id) % cpus.size()],
                          .init = &options.worker_init};
    return run_worker(seat, ring, arena, plan);
  };
}

std::unique_ptr<Launcher> make_launcher(const PoolOptions& options, Ring& ring, const Arena& arena,
                                        const WorkPlan& plan) {
  if (options.kind == WorkerKind::kSpawn) return std::make_unique<SpawnLauncher>(options, arena, plan);
  return std::make_unique<ForkLauncher>(
      forked_worker(options, ring, arena, plan), [&arena] { arena.drop_others(); }, options.answer_ms);
}

}  // namespace

WorkerPool::~WorkerPool() = default;

std::unique_ptr<WorkerPool> WorkerPool::start(const PoolOptions& options, Ring& ring, const Arena& arena,
                                              const WorkPlan& plan) {
  check(options, ring, plan);
  switch (options.kind) {
    case WorkerKind::kInline: return std::make_unique<InlinePool>(options, ring, arena, plan);
    case WorkerKind::kThread: return std::make_unique<ThreadPool>(options, ring, arena, plan);
    case WorkerKind::kFork:
    case WorkerKind::kSpawn: {
      auto pool = std::make_unique<ProcessPool>(options, ring, plan, make_launcher(options, ring, arena, plan));
      pool->launch_all();
      return pool;
    }
    case WorkerKind::kAuto: break;
  }
  throw ConfigError("the kind of workers must be settled before they start.");
}

}  // namespace infeed
