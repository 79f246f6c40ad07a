#pragma once
/// Batches that are on the device when they are asked for.
///
///   auto loader = infeed::torch::data_loader(...);
///   for (auto& batch : infeed::torch::Prefetcher(*loader, device)) step(batch.data, batch.target);
///
///   the thread here                                   the caller
///   next batch of the source, on the host
///   not page-locked? into page-locked memory of LibTorch's
///   copy, on a stream of its own ── event ──────────> its current stream waits for the event
///   ... `ahead` batches at most                       the batch; the device memory is the stream's (record_stream)

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "infeed/loader/loader.h"
#include "infeed/torch/codec.h"
#include "infeed/torch/tensor.h"

namespace infeed::torch {

struct PrefetchOptions {
  /// Batches copied, or being copied, ahead of the caller. Default 2. Each costs a batch of device memory, and one of
  /// host memory until its copy has passed. At least 1; no matter on the host, where batches pass through.
  std::size_t ahead = 2;
};

inline auto members(TensorBatch& batch) { return std::tie(batch.tensors, batch.indices, batch.epoch, batch.number); }

/// One batch on its way, of a type that only the Prefetcher knows.
struct Carried {
  std::shared_ptr<void> batch;
  /// Calls its argument for each tensor.
  std::function<void(const std::function<void(at::Tensor&)>&)> each_tensor;
};

/// The copies of one epoch: a thread, a stream and a queue. Threads: one consumer.
class INFEED_API CopyLine {
 public:
  /// `pull` gives the source's next batch, and is called by the thread here only.
  CopyLine(at::Device device, std::size_t ahead, std::function<std::optional<Carried>()> pull);
  /// Waits for the batch that the source makes just now.
  ~CopyLine();
  CopyLine(const CopyLine&) = delete;
  CopyLine& operator=(const CopyLine&) = delete;

  /// The next batch, on the device; the caller's current stream waits for it. nullopt at the end. Throws what the
  /// source threw, in its place; the batches after it come.
  [[nodiscard]] std::optional<Carried> next();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Throws ConfigError where LibTorch has no such device here.
INFEED_API void check_device(at::Device device, const PrefetchOptions& options);

/// Any source of batches as a range on `device`: a DataLoader of infeed::torch or of torch::data, an infeed::Loader (its
/// batches become TensorBatches). Each begin() begins an epoch of the source, on the caller's thread, and ends the
/// iterators of the one before.
///
/// Order and values: the source's. Host: batches pass through, without thread or copy.
/// Memory: LibTorch's own allocators, on the host page-locked ones; tensors that are page-locked already are copied from
/// where they lie. Lifetime: the source is borrowed, and left alone between begin() and the end of the epoch.
template <typename Source>
class Prefetcher {
 public:
  using SourceBatch = std::decay_t<decltype(*std::declval<Source&>().begin())>;
  static constexpr bool kOfInfeed = std::is_same_v<SourceBatch, Batch>;
  using BatchType = std::conditional_t<kOfInfeed, TensorBatch, SourceBatch>;
  class Iterator;

  /// Throws ConfigError for a device that LibTorch does not have here.
  Prefetcher(Source& source, at::Device device, PrefetchOptions options = {})
      : source_(source), device_(device), options_(options) {
    check_device(device, options);
  }

  [[nodiscard]] Iterator begin() {
    ++begun_;
    line_.reset();
    at_.emplace(source_.begin());
    first_ = true;
    ended_ = false;
    if (!device_.is_cpu())
      line_ = std::make_unique<CopyLine>(device_, options_.ahead, [this] { return carried(pull()); });
    return Iterator(*this);
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  // Of the epoch that the `begun`-th begin() began; with another one, and after its end, it is over.
  std::optional<BatchType> next(std::uint64_t begun) {
    if (begun != begun_ || ended_) return std::nullopt;
    std::optional<BatchType> batch = line_ ? from_line() : pull();
    ended_ = !batch.has_value();
    return batch;
  }
  std::optional<BatchType> from_line() {
    std::optional<Carried> carried = line_->next();
    if (!carried) return std::nullopt;
    return std::move(*static_cast<BatchType*>(carried->batch.get()));
  }

  // torch::data's iterators fetch their first batch when they are first looked at.
  std::optional<BatchType> pull() {
    if (!first_) ++*at_;
    const bool ended = *at_ == source_.end();
    first_ = false;
    if (ended) return std::nullopt;
    if constexpr (kOfInfeed)
      return to_tensors(**at_);
    else
      return std::move(**at_);
  }
  static std::optional<Carried> carried(std::optional<BatchType> batch) {
    if (!batch) return std::nullopt;
    auto held = std::make_shared<BatchType>(std::move(*batch));
    BatchType& of = *held;
    return Carried{std::move(held), [&of](const auto& f) { Codec<BatchType>::each_tensor(of, f); }};
  }

  Source& source_;
  at::Device device_;
  PrefetchOptions options_;
  std::optional<decltype(std::declval<Source&>().begin())> at_;
  std::uint64_t begun_ = 0;
  bool first_ = true;
  bool ended_ = false;
  std::unique_ptr<CopyLine> line_;  // last: its thread uses the others
};

/// Input iterator over an epoch.
template <typename Source>
class Prefetcher<Source>::Iterator {
 public:
  using value_type = BatchType;
  using difference_type = std::ptrdiff_t;
  explicit Iterator(Prefetcher& of) : of_(&of), begun_(of.begun_), batch_(of.next(begun_)) {}
  [[nodiscard]] BatchType& operator*() { return *batch_; }
  [[nodiscard]] BatchType* operator->() { return &*batch_; }
  Iterator& operator++() {
    batch_.reset();  // its memory may serve the batch that next() waits for
    batch_ = of_->next(begun_);
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const Iterator& it, std::default_sentinel_t) noexcept { return !it.batch_.has_value(); }

 private:
  Prefetcher* of_;
  std::uint64_t begun_;
  std::optional<BatchType> batch_;
};

}  // namespace infeed::torch
