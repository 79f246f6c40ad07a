#pragma once
/// Every knob of the Loader: meaning, default, unit, price.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "infeed/collate/collate.h"
#include "infeed/sampler/sampler.h"

namespace infeed {

class DeviceStream;

/// Who fills the batches.
enum class WorkerKind : std::uint8_t {
  kAuto,    ///< kInline for num_workers == 0, else kThread
  kInline,  ///< the caller of next(): no parallelism, easiest to debug
  kThread,  ///< threads of this process: least memory; the dataset must be thread-safe (the interface asks it)
  kFork,    ///< forked processes: a crash in a decoder costs one worker; costs page tables of the parent at start
  kSpawn,   ///< new processes of infeed-worker: safe beside CUDA and threads; the dataset needs a spec()
};
[[nodiscard]] INFEED_API const char* to_string(WorkerKind kind) noexcept;

/// How a batch is divided among workers.
enum class Filling : std::uint8_t {
  kAuto,         ///< cooperative where every field has a fixed shape and no collate is given, else whole
  kCooperative,  ///< all workers fill the oldest batch: earliest first batch, memory follows prefetch, not the workers
  kWhole,        ///< one worker a batch
};

/// What happens to a sample that cannot be read.
enum class OnError : std::uint8_t {
  kRaise,  ///< next() throws DataError naming index, file and cause; the call after goes on with the next batch
  /// Left out, counted and listed in stats(). Batches stay full: later samples move up, at one copy a batch until the
  /// batches read and the batches given begin together again. With a collate, a batch sampler or a stream they come
  /// shorter instead. Overrides in_order = false.
  kSkip,
  /// The nearest following index that can be read takes its place (at most 16 tries), counted and listed. Not for
  /// streams.
  kReplace,
};

/// As num_workers: as many as the trainer needs, found while it trains.
inline constexpr int kAutoWorkers = std::numeric_limits<int>::min();

/// Passed to worker_init, in the worker, before its first sample.
struct WorkerInfo {
  int id = 0;           ///< in [0, num_workers)
  int num_workers = 0;  ///< at the time this worker started
  std::uint64_t seed = 0;
};

struct LoaderOptions {
  /// Samples per batch. Default 1.
  std::int64_t batch_size = 1;
  /// A RandomSampler with `seed` instead of a SequentialSampler. Default false. Excludes sampler and batch_sampler.
  bool shuffle = false;
  /// Order of the samples. Excludes batch_sampler.
  std::unique_ptr<Sampler> sampler = nullptr;
  /// Composition of the batches. Excludes batch_size, shuffle, sampler and drop_last.
  std::unique_ptr<BatchSampler> batch_sampler = nullptr;
  /// Leaves out a last batch that is not full. Default false.
  bool drop_last = false;
  /// Of the shuffle and of all transforms. Default 0.
  std::uint64_t seed = 0;

  /// Workers, at most 64; 0 means that the caller does the work, whatever worker_kind says. Default 0. Each costs a
  /// process or thread, and with whole filling a batch of memory (see prefetch). kAutoWorkers: begins with half of the
  /// usable CPUs (affinity and cgroup quota; 1 to 4), then adds and removes workers where that makes steps shorter, each
  /// change a line in the log at level info. A stream then needs stream_shards. set_num_workers() ends it.
  int num_workers = 0;
  WorkerKind worker_kind = WorkerKind::kAuto;
  /// Threads of each worker. Default 1; at most 64, and 256 over all workers.
  int threads_per_worker = 1;
  /// Batches in flight, in all. Default 0: 2 for cooperative filling, up to 8 where batches are small (2 MiB in all);
  /// max(2, workers + 1) for whole; kAutoWorkers may find 8 times that, up to 32. Each costs one batch of memory.
  int prefetch = 0;
  Filling filling = Filling::kAuto;
  /// Batches come in the sampler's order (default) or as they are ready. kSkip needs the order and keeps it.
  bool in_order = true;
  /// Rows to arrays for variable fields (pad, ragged, your own), at one copy. Null: the samples must be of one shape,
  /// and lie stacked from the start; a schema with variable fields is a ConfigError.
  std::shared_ptr<const Collate> collate = nullptr;
  /// Shards of a Stream. Default 0: max(1, num_workers). It fixes the order: keep it to change num_workers without
  /// changing batches.
  int stream_shards = 0;

  OnError on_error = OnError::kRaise;
  /// next() throws TimeoutError after so long without its batch, milliseconds. Default 0: never.
  std::int64_t timeout_ms = 0;
  /// A spawned worker must attach, before it makes its dataset, while next() waits so long, milliseconds; else next()
  /// throws WorkerError: worker_executable is some other program. Default a minute; 0: never.
  std::int64_t start_timeout_ms = 60'000;
  /// Called every 50 ms, and at once when a signal interrupts the wait, by the thread in next() while its batch is not
  /// ready; between runs of rows where the caller does the work itself. May throw: next() then throws that, and nothing
  /// is lost. For hosts whose signals are looked at by polling, as Python's.
  std::function<void()> on_wait = {};
  /// Workers that may be replaced after dying, over the loader's life. Default -1: as many as num_workers.
  int max_restarts = -1;

  /// Runs in each worker before its first sample; an exception there is a WorkerError at next(). Not with kSpawn.
  std::function<void(const WorkerInfo&)> worker_init = {};
  /// For kSpawn: a worker_init that the dataset's plugin registered under this name.
  std::string worker_init_name = {};
  /// CPUs for the workers: worker i is bound to cpu_affinity[i % size]. Default empty: the scheduler decides.
  std::vector<int> cpu_affinity = {};
  /// Path of infeed-worker. Default empty: $INFEED_WORKER, then beside libinfeed.so.
  std::string worker_executable = {};

  /// Where the batches go: "cuda:0", "simulated:0" (infeed/device/open.h). Default empty: the host's memory. Opened after
  /// the workers have started.
  std::string device = {};
  /// Batches copied to the device, or being copied, ahead of next(), by a stream and two threads of its own. Default 2;
  /// each costs one batch of device memory, and of the host's while it is copied (StagerOptions has the rules). 0: batches
  /// stay in host memory, page-locked, for trainers that copy them: memory is written again only when all that was queued
  /// on the device, in any stream, by the next() after the batch was dropped, is done.
  int prefetch_to_device = 2;
  /// prefetch_to_device = 0, on "cuda:0" if no device is named. Default false.
  bool pin_memory = false;
  /// The stream in which batches are used (Device::borrow_stream makes one of a cudaStream_t); borrowed. Default null:
  /// CUDA's default stream; on other devices stager()->compute_stream().
  DeviceStream* compute_stream = nullptr;

  /// Bytes that batches in flight and held by the user may take together. Default 0: what the machine allows; what is
  /// in flight counts as a whole, touched or not.
  std::uint64_t memory_limit = 0;
  /// With kAutoWorkers: bytes that this process and the workers may have in all, shared pages once (PSS); batches, model
  /// and all else of this process count. Begins with one worker then, and none comes that it has no room for. Default 0:
  /// what the machine and its cgroups leave.
  std::uint64_t memory_budget = 0;
  /// Address space of one batch, bytes. Default 0: twice the batch where its size is known, else 1 GiB. Costs no
  /// memory.
  std::uint64_t extent_bytes = 0;
};

}  // namespace infeed
