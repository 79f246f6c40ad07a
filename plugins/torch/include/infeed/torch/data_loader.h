#pragma once
/// torch::data's datasets under infeed's workers, used like torch::data::make_data_loader().
///
///   auto loader = infeed::torch::data_loader(std::move(dataset).map(Stack<>()), DataLoaderOptions(64).workers(2));
///   for (auto& batch : *loader) step(batch.data, batch.target);

#include <torch/data/dataloader_options.h>
#include <torch/data/iterator.h>
#include <torch/data/samplers.h>
#include <torch/data/worker_exception.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/loader/loader.h"
#include "infeed/torch/batch_maker.h"

namespace infeed::torch {

/// What torch::data's DataLoaderOptions do not have. max_jobs of those, where it is set, is the number of batches in
/// flight; default: one more than workers, and at least 2. Without workers it is 1.
struct EngineOptions {
  /// Default kAuto: forked processes; threads for a stateful dataset, which its workers share; the caller of the
  /// iterator where there are no workers. kSpawn cannot be.
  WorkerKind worker_kind = WorkerKind::kAuto;
  /// The next three as in LoaderOptions.
  std::vector<int> cpu_affinity = {};
  std::uint64_t memory_limit = 0;
  std::uint64_t extent_bytes = 0;
  /// Processes that may be replaced after dying. Default -1: as many as workers.
  int max_restarts = -1;
};

/// The options of both as the engine's. Throws ConfigError for kinds that cannot be.
[[nodiscard]] INFEED_API LoaderOptions loader_options(const td::DataLoaderOptions& options, const EngineOptions& engine,
                                                      bool stateful);

/// Throws IndexError for a request of a sampler that has nothing, or more than the ring has room for.
INFEED_API void check_request(std::size_t size, std::size_t batch_size);

/// Requests of a sampler of torch's, as numbers.
template <typename Sampler>
class RequestSampler final : public BatchSampler {
 public:
  using BatchRequest = typename Sampler::BatchRequestType;
  static constexpr bool kIndices = std::is_same_v<BatchRequest, std::vector<std::size_t>>;
  static_assert(kIndices || std::is_same_v<BatchRequest, td::samplers::BatchSize>,
                "infeed::torch::data_loader: the sampler must yield std::vector<size_t> or BatchSize.");

  // Moved where it can be. NOLINTNEXTLINE(performance-unnecessary-value-param)
  RequestSampler(Sampler sampler, const td::DataLoaderOptions& options)
      : sampler_(std::move(sampler)), batch_size_(options.batch_size()), drop_last_(options.drop_last()) {}

  void reset() { sampler_.reset(std::nullopt); }
  void start_epoch(std::uint64_t /*epoch*/) override {}  // the iterator resets it, when torch::data would
  [[nodiscard]] bool next(std::vector<std::int64_t>& indices) override {
    const std::optional<BatchRequest> request = sampler_.next(batch_size_);
    if (!request || (request->size() < batch_size_ && drop_last_)) return false;
    check_request(request->size(), batch_size_);
    if constexpr (kIndices)
      indices.assign(request->begin(), request->end());
    else
      indices.assign(1, static_cast<std::int64_t>(request->size()));
    return true;
  }
  [[nodiscard]] std::int64_t max_batch_size() const override {
    constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max());
    return kIndices ? static_cast<std::int64_t>(std::min(batch_size_, kMost)) : 1;
  }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return std::nullopt; }
  void save(State& /*state*/) const override {}
  void load(const State& /*state*/) override {}

 private:
  Sampler sampler_;
  std::size_t batch_size_;
  bool drop_last_;
};

/// Asks a stateful dataset for batches until it has no more.
class INFEED_API SizeSampler final : public BatchSampler {
 public:
  explicit SizeSampler(std::size_t batch_size) : batch_size_(batch_size) {}
  void reset() { ended_ = false; }
  void end() { ended_ = true; }
  void start_epoch(std::uint64_t /*epoch*/) override {}
  [[nodiscard]] bool next(std::vector<std::int64_t>& indices) override;
  [[nodiscard]] std::int64_t max_batch_size() const override { return 1; }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return std::nullopt; }
  void save(State& /*state*/) const override {}
  void load(const State& /*state*/) override {}

 private:
  std::size_t batch_size_;
  bool ended_ = false;
};

/// Order: the sampler's, drawn from LibTorch's default generator when and as torch::data draws it.
/// Memory: a batch's tensors stand on the loader's memory, without a copy; they may outlive the loader.
/// Errors: what a worker's dataset throws arrives as torch::data::WorkerException with batch, worker and sample (without
/// workers as the exception itself); a dead worker is a WorkerError, TimeoutError comes after timeout(). Others are the
/// sampler's, or the loader's own. The iterator may go on after a WorkerException.
/// Threads: one at a time.
template <typename Dataset, typename Requests>
class DataLoader {
 public:
  using BatchType = BatchOf<Dataset>;

  /// Starts the workers.
  DataLoader(Dataset dataset, std::unique_ptr<Requests> requests, const td::DataLoaderOptions& options,
             const EngineOptions& engine)
      : options_(options), requests_(requests.get()) {
    LoaderOptions ours = loader_options(options, engine, Dataset::is_stateful);
    options_.max_jobs = static_cast<std::size_t>(ours.prefetch);
    maker_ = std::make_shared<BatchMaker<Dataset>>(std::move(dataset), ours.worker_kind);
    ours.batch_sampler = std::move(requests);
    ours.collate = maker_;
    loader_.emplace(rows_, std::move(ours));
  }

  /// Begins an epoch; what is left of another ends, and so do its iterators.
  [[nodiscard]] td::Iterator<BatchType> begin() {
    engine().reset();
    const std::uint64_t begun = ++begun_;
    requests_->reset();
    maker_->start_epoch(loader_->epoch());
    return td::Iterator<BatchType>(std::make_unique<td::detail::ValidIterator<BatchType>>(
        [this, begun] { return begun == begun_ ? this->next() : std::nullopt; }));
  }
  [[nodiscard]] td::Iterator<BatchType> end() {
    return td::Iterator<BatchType>(std::make_unique<td::detail::SentinelIterator<BatchType>>());
  }

  /// Stops the workers, for good; batches stay.
  void join() { loader_.reset(); }
  [[nodiscard]] const td::FullDataLoaderOptions& options() const noexcept { return options_; }
  [[nodiscard]] LoaderStats stats() const { return engine().stats(); }

 private:
  Loader& engine() {
    if (!loader_) throw ConfigError("this data loader's workers were joined: make another one.");
    return *loader_;
  }
  const Loader& engine() const { return const_cast<DataLoader&>(*this).engine(); }

  std::optional<BatchType> next() {
    while (std::optional<Batch> batch = next_message()) {
      MessageReader from(*batch);
      if (from.value<bool>()) return Codec<BatchType>::read(from);
      if constexpr (Dataset::is_stateful) requests_->end();
      if (options_.workers == 0) engine().reset();  // the dataset is not asked again
    }
    return std::nullopt;
  }
  std::optional<Batch> next_message() {
    try {
      return engine().next();
    } catch (const DataError& error) {  // as which a worker's come
      std::exception_ptr cause = maker_->faults().find(error.what());
      if (!cause) cause = std::current_exception();
      if (options_.workers == 0) std::rethrow_exception(cause);
      throw td::WorkerException(cause);
    }
  }

  td::FullDataLoaderOptions options_;
  RequestDataset rows_;
  std::shared_ptr<BatchMaker<Dataset>> maker_;
  Requests* requests_;  // the loader's
  std::uint64_t begun_ = 0;
  std::optional<Loader> loader_;
};

// Samplers are moved where they can be. NOLINTBEGIN(performance-unnecessary-value-param)

/// A stateless dataset in the order of `sampler`.
template <typename Dataset, typename Sampler>
requires(!Dataset::is_stateful)
    [[nodiscard]] auto data_loader(Dataset dataset, Sampler sampler, td::DataLoaderOptions options,
                                   const EngineOptions& engine = {}) {
  using Requests = RequestSampler<Sampler>;
  return std::make_unique<DataLoader<Dataset, Requests>>(
      std::move(dataset), std::make_unique<Requests>(std::move(sampler), options), options, engine);
}

/// A stateless dataset in the order of a Sampler of its size.
template <typename Sampler = td::samplers::RandomSampler, typename Dataset>
requires(!Dataset::is_stateful && std::is_constructible_v<Sampler, std::size_t>)
    [[nodiscard]] auto data_loader(Dataset dataset, td::DataLoaderOptions options = {},
                                   const EngineOptions& engine = {}) {
  const std::optional<std::size_t> size = dataset.size();
  if (!size) throw ConfigError("the dataset does not know its size: give data_loader() a sampler.");
  return data_loader(std::move(dataset), Sampler(*size), options, engine);
}

/// A stateful dataset, asked for batches until it has no more.
template <typename Dataset>
requires(Dataset::is_stateful) [[nodiscard]] auto data_loader(Dataset dataset, td::DataLoaderOptions options = {},
                                                              const EngineOptions& engine = {}) {
  return std::make_unique<DataLoader<Dataset, SizeSampler>>(
      std::move(dataset), std::make_unique<SizeSampler>(options.batch_size()), options, engine);
}

// NOLINTEND(performance-unnecessary-value-param)

}  // namespace infeed::torch
