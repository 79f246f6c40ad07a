#include "infeed/torch/data_loader.h"

#include <c10/util/StringUtil.h>

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

int batches_in_flight(const td::DataLoaderOptions& options) {
  if (options.workers() == 0) return 1;  // the sampler draws when the batch is asked for, as torch::data's does
  if (options.max_jobs() == 0U) throw ConfigError("max_jobs is 0; it must be at least 1.");
  return saturated(options.max_jobs().value_or(std::max<std::size_t>(options.workers(), 1) + 1));
}

std::int64_t milliseconds(const td::DataLoaderOptions& options) {
  if (!options.timeout()) return 0;
  if (options.timeout()->count() > 0) return options.timeout()->count();
  throw ConfigError(c10::str("timeout is ", options.timeout()->count(),
                             " ms; it must be at least 1. To wait as long as it takes, leave it out."));
}

}  // namespace

LoaderOptions loader_options(const td::DataLoaderOptions& options, const EngineOptions& engine, bool stateful) {
  if (options.batch_size() == 0) throw ConfigError("batch_size is 0; it must be at least 1.");
  LoaderOptions ours;
  ours.worker_kind = kind_of(options, engine.worker_kind, stateful);
  ours.num_workers = saturated(options.workers());
  ours.prefetch = batches_in_flight(options);
  ours.in_order = options.enforce_ordering();
  ours.timeout_ms = milliseconds(options);
  ours.seed = current_seed();
  ours.cpu_affinity = engine.cpu_affinity;
  ours.memory_limit = engine.memory_limit;
  ours.extent_bytes = engine.extent_bytes;
  ours.max_restarts = engine.max_restarts;
  if (ours.worker_kind == WorkerKind::kFork) ours.worker_init = [](const WorkerInfo&) { settle_process(); };
  return ours;
}

void check_request(std::size_t size, std::size_t batch_size) {
  if (size == 0) throw IndexError("the sampler yielded a batch without indices.");
  if (size > batch_size)
    throw IndexError(c10::str("the sampler yielded ", size, " indices for a batch; batch_size (", batch_size,
                              ") must be the most that it yields."));
}

bool SizeSampler::next(std::vector<std::int64_t>& indices) {
  if (ended_) return false;
  indices.assign(1, static_cast<std::int64_t>(batch_size_));
  return true;
}

}  // namespace infeed::torch
