#include "infeed/torch/data_loader.h"

#include <algorithm>
#include <limits>

namespace infeed::torch {
namespace {

WorkerKind kind_of(const td::DataLoaderOptions& options, WorkerKind asked, bool stateful) {
  if (options.workers() == 0) return WorkerKind::kInline;
  if (asked == WorkerKind::kAuto) return stateful ? WorkerKind::kThread : WorkerKind::kFork;
  if (asked == WorkerKind::kSpawn)
    throw ConfigError(
        "a dataset of torch::data cannot be made again in a spawned process; use worker_kind fork or thread.");
  if (asked == WorkerKind::kFork && stateful)
    throw ConfigError(
        "a stateful dataset is one for all its workers, which forked processes cannot share; use threads.");
  return asked;
}

// For the engine to name, where it is too many.
int saturated(std::size_t count) {
  return static_cast<int>(std::min(count, static_cast<std::size_t>(std::numeric_limits<int>::max())));
}

}  // namespace

LoaderOptions loader_options(const td::DataLoaderOptions& options, const EngineOptions& engine, bool stateful) {
  if (options.batch_size() == 0) throw ConfigError("batch_size is 0; it must be at least 1.");
  LoaderOptions ours;
  ours.worker_kind = kind_of(options, engine.worker_kind, stateful);
  ours.num_workers = saturated(options.workers());
  ours.prefetch = saturated(options.max_jobs().value_or(0));
  ours.in_order = options.enforce_ordering();
  ours.timeout_ms = options.timeout() ? options.timeout()->count() : 0;
  ours.seed = current_seed();
  ours.cpu_affinity = engine.cpu_affinity;
  ours.memory_limit = engine.memory_limit;
  ours.extent_bytes = engine.extent_bytes;
  ours.max_restarts = engine.max_restarts;
  if (ours.worker_kind == WorkerKind::kFork) ours.worker_init = [](const WorkerInfo&) { settle_process(); };
  return ours;
}

bool SizeSampler::next(std::vector<std::int64_t>& indices) {
  if (ended_) return false;
  indices.assign(1, static_cast<std::int64_t>(batch_size_));
  return true;
}

}  // namespace infeed::torch
