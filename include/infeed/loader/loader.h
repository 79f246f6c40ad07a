#pragma once
/// The loader: batches of a dataset, filled by workers, in sampler order.
///
///   infeed::ImageFolder dataset("train", {.transforms = {infeed::random_resized_crop(224),
///                                                        infeed::random_horizontal_flip(), infeed::normalize()}});
///   infeed::Loader loader(dataset, {.batch_size = 64, .shuffle = true, .num_workers = 4});
///   while (auto batch = loader.next()) step(batch->at("image"), batch->at("label"));

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/batch/batch.h"
#include "infeed/dataset/dataset.h"
#include "infeed/loader/options.h"
#include "infeed/loader/stats.h"

namespace infeed {

class Stager;

/// Determinism: dataset, sampler, seed and epoch fix every byte of every batch; kind and number of workers do not
/// matter.
/// Threads: one at a time for next() and what changes the loader; stats() from any. A second thread that calls next()
/// waits.
/// Death: a worker that dies is replaced up to max_restarts times and its rows are filled again; after that next()
/// throws WorkerError.
/// Fork: in a child that the user forks, the loader is inert: next() throws ConfigError and the destructor touches
/// nothing. The memory of each batch held at that moment is never used again here: drop batches before forking.
class INFEED_API Loader {
 public:
  /// `dataset` or `stream` is borrowed and must outlive the loader. Starts the workers. Throws ConfigError for options
  /// that contradict each other or the dataset, MemoryError where depth + 1 batches do not fit.
  explicit Loader(const Dataset& dataset, LoaderOptions options = {});
  explicit Loader(const Stream& stream, LoaderOptions options = {});
  /// Stops and reaps the workers: processes in bounded time, threads when the samples in their hands end. Batches in
  /// the user's hands stay valid. Destroy before exec(): the workers would stay as children of the new program.
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  /// Next batch of this epoch; nullopt once at its end: the call after begins the next epoch.
  /// Throws DataError (a sample, by on_error), WorkerError, TimeoutError, MemoryError (memory_limit), IndexError (the
  /// sampler), DeviceError (options.device). With a device its arrays are ready for what is queued in the compute stream
  /// after this.
  [[nodiscard]] std::optional<Batch> next();

  /// Drops the rest of this epoch; next() begins the following one. No-op between epochs.
  void reset();
  /// The next epoch to begin is `epoch`; drops the rest of the current one.
  void set_epoch(std::uint64_t epoch);
  /// Epoch of the batches that next() gives now (or would begin).
  [[nodiscard]] std::uint64_t epoch() const;
  /// Batches per epoch; nullopt where the sampler or the stream does not know.
  [[nodiscard]] std::optional<std::int64_t> size() const;

  /// Position as of the last batch that next() gave: small, JSON-able, valid for any kind and number of workers.
  [[nodiscard]] State state_dict() const;
  /// The next batch is the one after the saved position. Throws StateError on another seed, dataset size, sampler,
  /// batch size, number of shards or version.
  void load_state_dict(const State& state);

  /// Adds or removes workers, also while an epoch runs; the batches stay the same. Up to 64; not for kInline.
  void set_num_workers(int num_workers);
  [[nodiscard]] int num_workers() const;  ///< Now; 0 for kInline. With kAutoWorkers it changes.

  /// From now on memory that batches have used is never given back to the system, but used again: needed where a device
  /// page-locks it. The Stager asks for it. Costs the most batches ever held at once.
  void keep_memory_warm();

  /// Where time and memory went since construction or reset_stats(), and what bounds the training. From any thread,
  /// also while next() waits. Reads /proc: for once a second, not for each batch.
  [[nodiscard]] LoaderStats stats() const;
  /// Counts anew from here, after a warm-up say.
  void reset_stats();
  /// What brings batches to options.device: its stream and its own stats(). Null where batches stay on the host.
  [[nodiscard]] Stager* stager() const noexcept;

  /// One epoch as a range: for (Batch& batch : loader) ...; a new begin() in mid-epoch resets.
  class Iterator;
  [[nodiscard]] Iterator begin();
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  friend class PinnedSource;
  friend class StagedSource;
  class Source;
  class Engine;
  std::unique_ptr<Source> source_;
};

/// Input iterator over the rest of an epoch.
class Loader::Iterator {
 public:
  using value_type = Batch;
  using difference_type = std::ptrdiff_t;
  explicit Iterator(Loader& loader) : loader_(&loader), batch_(loader.next()) {}
  [[nodiscard]] Batch& operator*() { return *batch_; }
  Iterator& operator++() {
    batch_.reset();  // its memory may serve the batch that next() waits for
    batch_ = loader_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept { return !it.batch_.has_value(); }

 private:
  Loader* loader_;
  std::optional<Batch> batch_;
};

}  // namespace infeed
