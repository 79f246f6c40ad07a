#include "loader/settings.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <limits>

#include "infeed/base/error.h"
#include "ring/ring.h"
#include "worker/pool.h"

namespace infeed {
namespace {

constexpr std::uint64_t kUnknownExtent = 1ULL << 30;
constexpr std::uint64_t kMinExtent = 2ULL << 20;
constexpr int kMaxThreadsPerWorker = 64;
constexpr int kMaxPrefetch = 1 << 15;
constexpr int kSlotsForGrowth = 8;  // workers that set_num_workers() may add before slots bound their use
constexpr int kSpinUs = 20;
constexpr std::uint64_t kSmallBatches = 2ULL << 20;  // bytes in flight that cost nobody anything
constexpr std::uint64_t kDeepest = 8;
constexpr std::int64_t kLongestTimeoutMs = std::int64_t{366} * 24 * 3600 * 1000;

double mebibytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void check_numbers(const LoaderOptions& options) {
  if (options.batch_size < 1 && !options.batch_sampler)
    throw ConfigError(fmt::format("batch_size is {}; it must be at least 1.", options.batch_size));
  if (options.num_workers < 0 || options.num_workers > kMaxWorkers)
    throw ConfigError(
        fmt::format("num_workers is {}; between 0 and {} are possible.", options.num_workers, kMaxWorkers));
  if (options.threads_per_worker < 1 || options.threads_per_worker > kMaxThreadsPerWorker)
    throw ConfigError(fmt::format("threads_per_worker is {}; between 1 and {} are possible.",
                                  options.threads_per_worker, kMaxThreadsPerWorker));
  if (options.num_workers * options.threads_per_worker > kMaxClaimants)
    throw ConfigError(
        fmt::format("{} workers of {} threads are {} threads; at most {} are possible. Lower threads_per_worker.",
                    options.num_workers, options.threads_per_worker, options.num_workers * options.threads_per_worker,
                    kMaxClaimants));
  if (options.prefetch < 0 || options.prefetch > kMaxPrefetch)
    throw ConfigError(fmt::format("prefetch is {}; it counts batches: between 1 and {}, or 0 for the default.",
                                  options.prefetch, kMaxPrefetch));
  if (options.timeout_ms > kLongestTimeoutMs)
    throw ConfigError(fmt::format("timeout_ms is {}; at most {} (a year) is possible. Use 0 for no timeout.",
                                  options.timeout_ms, kLongestTimeoutMs));
  if (options.timeout_ms < 0)
    throw ConfigError(fmt::format("timeout_ms is {}; use 0 for no timeout.", options.timeout_ms));
  if (options.start_timeout_ms < 0 || options.start_timeout_ms > kLongestTimeoutMs)
    throw ConfigError(fmt::format("start_timeout_ms is {}; between 1 and {} (a year), or 0 for no limit, are possible.",
                                  options.start_timeout_ms, kLongestTimeoutMs));
  if (options.max_restarts < -1)
    throw ConfigError(fmt::format("max_restarts is {}; use -1 for as many as num_workers.", options.max_restarts));
  if (options.stream_shards < 0)
    throw ConfigError(fmt::format("stream_shards is {}; use 0 for one per worker.", options.stream_shards));
}

void check_workers(const LoaderOptions& options) {
  const WorkerKind kind = options.worker_kind;
  if (kind == WorkerKind::kInline && options.num_workers > 0)
    throw ConfigError(fmt::format(
        "worker_kind inline has no workers, num_workers is {}. Set it to 0, or choose thread, fork or spawn.",
        options.num_workers));
  if (options.num_workers == 0 && options.threads_per_worker > 1)
    throw ConfigError(fmt::format("threads_per_worker is {} with num_workers 0. Set num_workers to 1 or more.",
                                  options.threads_per_worker));
  if (kind == WorkerKind::kSpawn && options.worker_init)
    throw ConfigError(
        "a worker_init function cannot cross to a spawned process. Register it in the dataset's plugin and name it in "
        "worker_init_name.");
  if (kind != WorkerKind::kSpawn && !options.worker_init_name.empty())
    throw ConfigError("worker_init_name is for worker_kind spawn; use worker_init.");
  for (const int cpu : options.cpu_affinity) {
    if (cpu < 0 || cpu >= CPU_SETSIZE)
      throw ConfigError(fmt::format("cpu_affinity names CPU {}; between 0 and {} are possible.", cpu, CPU_SETSIZE - 1));
  }
}

}  // namespace

// Whole: a batch a worker, and one that is taken. Cooperative: two do, but small batches are used up while a worker
// wakes.
int default_depth(const Settings& settings, int num_workers) noexcept {
  if (settings.whole) return std::max(2, num_workers + 1);
  const std::uint64_t small = kSmallBatches / std::max<std::uint64_t>(settings.batch_bytes, 1);
  return static_cast<int>(std::clamp<std::uint64_t>(small, 2, kDeepest));
}

FaultPolicy fault_policy(OnError on_error) noexcept {
  switch (on_error) {
    case OnError::kRaise: return FaultPolicy::kRaise;
    case OnError::kSkip: return FaultPolicy::kSkip;
    case OnError::kReplace: return FaultPolicy::kReplace;
  }
  return FaultPolicy::kRaise;
}

void check_options(const LoaderOptions& options, bool is_stream) {
  check_numbers(options);
  check_workers(options);
  if (options.shuffle && options.sampler)
    throw ConfigError("shuffle and sampler exclude each other: the sampler fixes the order.");
  if (options.batch_sampler && (options.batch_size != 1 || options.shuffle || options.sampler || options.drop_last))
    throw ConfigError(
        "batch_sampler excludes batch_size, shuffle, sampler and drop_last: it composes the batches itself.");
  if (!is_stream) {
    if (options.stream_shards > 0)
      throw ConfigError("stream_shards is for streams; a map-style dataset has no shards.");
    return;
  }
  if (options.shuffle || options.sampler || options.batch_sampler)
    throw ConfigError(
        "a stream yields its samples in its own order: shuffle, sampler and batch_sampler are for map-style datasets.");
  if (options.filling == Filling::kCooperative)
    throw ConfigError("a stream is read front to back by one worker a shard: filling must be whole or auto.");
  if (options.on_error == OnError::kReplace)
    throw ConfigError("on_error replace needs a map-style dataset; a stream's neighbours are not known. Use skip.");
}

Settings make_settings(const LoaderOptions& options, const Schema& schema, bool is_stream, std::int64_t max_rows,
                       const MachineLimits& limits) {
  if (max_rows < 1 || max_rows > std::numeric_limits<int>::max() / 2)
    throw ConfigError(fmt::format("a batch of {} samples is not possible; between 1 and 2^30.", max_rows));
  Settings settings;
  settings.kind = options.worker_kind;
  if (options.num_workers == 0) settings.kind = WorkerKind::kInline;
  if (settings.kind == WorkerKind::kAuto) settings.kind = WorkerKind::kThread;
  const bool in_place = schema.fixed() && !options.collate;
  if (!schema.fixed() && !options.collate)
    throw ConfigError(
        "the dataset's samples differ in shape and no collate is given. Give options.collate (PadCollate, "
        "RaggedCollate), or transforms that end in one size.");
  if (options.filling == Filling::kCooperative && !in_place)
    throw ConfigError("cooperative filling needs samples of one shape and no collate; use filling whole or auto.");
  settings.whole = is_stream || !in_place || options.filling == Filling::kWhole;
  // Skipped samples move later ones up: that has an order or none.
  settings.in_order = options.in_order || options.on_error == OnError::kSkip;
  if (in_place) {
    settings.layout.emplace(schema, static_cast<int>(max_rows));
    settings.batch_bytes = settings.layout->nbytes();
  }
  settings.depth = options.prefetch > 0 ? options.prefetch : default_depth(settings, options.num_workers);
  settings.num_slots =
      settings.depth + std::max(options.num_workers, settings.kind == WorkerKind::kInline ? 1 : kSlotsForGrowth);
  settings.max_workers =
      settings.kind == WorkerKind::kInline ? 1 : std::min(kMaxWorkers, kMaxClaimants / options.threads_per_worker);
  settings.max_restarts = options.max_restarts < 0 ? options.num_workers : options.max_restarts;
  const bool fits = options.num_workers * options.threads_per_worker + 1 <= static_cast<int>(limits.usable_cpus);
  settings.spin_us = fits && settings.kind != WorkerKind::kInline ? kSpinUs : 0;
  settings.max_rows = static_cast<int>(max_rows);
  settings.memory_limit = options.memory_limit;
  settings.usable_cpus = limits.usable_cpus;
  const std::uint64_t twice = std::max(kMinExtent, 2 * settings.batch_bytes);
  settings.extent_bytes = options.extent_bytes > 0 ? options.extent_bytes : in_place ? twice : kUnknownExtent;
  if (in_place && settings.extent_bytes < settings.batch_bytes)
    throw ConfigError(
        fmt::format("extent_bytes is {}, but a batch of {} samples takes {} bytes. Raise extent_bytes (0 chooses it) "
                    "or lower batch_size.",
                    options.extent_bytes, max_rows, settings.batch_bytes));

  // Batches in flight, one in the user's hands, and one that is compacted.
  const std::uint64_t batches =
      static_cast<std::uint64_t>(settings.depth) + (options.on_error == OnError::kSkip ? 2 : 1);
  const std::uint64_t need = batches * settings.batch_bytes;
  if (options.memory_limit > 0 && need > options.memory_limit)
    throw ConfigError(
        fmt::format("{} batches of {:.1f} MiB need {:.0f} MiB, memory_limit is {:.0f} MiB. Lower prefetch ({}) or "
                    "batch_size ({}), or raise memory_limit.",
                    batches, mebibytes(settings.batch_bytes), mebibytes(need), mebibytes(options.memory_limit),
                    settings.depth, max_rows));
  if (limits.memory_left && need > *limits.memory_left)
    throw MemoryError(fmt::format(
        "{} batches of {:.1f} MiB need {:.0f} MiB, {} leaves {:.0f} MiB. Lower prefetch ({}) or batch_size ({}).",
        batches, mebibytes(settings.batch_bytes), mebibytes(need), limits.memory_source, mebibytes(*limits.memory_left),
        settings.depth, max_rows));
  return settings;
}

}  // namespace infeed
