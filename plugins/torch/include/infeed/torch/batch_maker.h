#pragma once
/// The worker's side of data_loader(): a dataset of torch::data's makes one batch of the indices that the ring brought.
///
///   dataset                                          how its batch is made
///   get() only, mapped by Transforms, then Stack     sample by sample, each copied to its final place while it is warm
///   anything else, then Stack                        get_batch() of all samples, each copied to its final place
///   any other batch                                  get_batch(), then as a message (codec.h)

#include <torch/data/datasets.h>
#include <torch/data/transforms.h>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "infeed/collate/collate.h"
#include "infeed/torch/codec.h"
#include "infeed/torch/worker.h"

namespace infeed::torch {

namespace td = ::torch::data;

// Whether a batch of `D` is its samples one by one: neither get_batch() nor apply_batch() was overridden.
template <typename D>
consteval bool overrides_get_batch() {
  if constexpr (requires {
                  typename D::ExampleType;
                  typename D::SelfType;
                  &D::get_batch;
                }) {
    using Base = td::datasets::Dataset<typename D::SelfType, typename D::ExampleType>;
    using Inherited = std::vector<typename D::ExampleType> (Base::*)(c10::ArrayRef<std::size_t>);
    return !std::is_same_v<decltype(&D::get_batch), Inherited>;
  } else {
    return true;
  }
}
template <typename T>
consteval bool overrides_apply_batch() {
  if constexpr (requires {
                  typename T::InputType;
                  typename T::OutputType;
                  &T::apply_batch;
                }) {
    using Base = td::transforms::Transform<typename T::InputType, typename T::OutputType>;
    using Inherited = std::vector<typename T::OutputType> (Base::*)(std::vector<typename T::InputType>);
    return !std::is_same_v<decltype(&T::apply_batch), Inherited>;
  } else {
    return true;
  }
}

template <typename D>
struct BySample {
  static constexpr bool value = !overrides_get_batch<D>();
  static auto get(D& dataset, std::size_t index) { return dataset.get(index); }
};
template <typename Source, typename Transform>
struct BySample<td::datasets::MapDataset<Source, Transform>> {
  static constexpr bool value = BySample<Source>::value && !overrides_apply_batch<Transform>();
  static auto get(td::datasets::MapDataset<Source, Transform>& dataset, std::size_t index) {
    // torch shows them as const; their methods are not, and the object is not.
    auto& source = const_cast<Source&>(dataset.dataset());
    return const_cast<Transform&>(dataset.transform()).apply(BySample<Source>::get(source, index));
  }
};

template <typename D>
struct StackedFrom {
  static constexpr bool value = false;
};
template <typename S, typename E>
requires(
    std::is_same_v<E, td::Example<>> ||
    std::is_same_v<E, td::TensorExample>) struct StackedFrom<td::datasets::MapDataset<S, td::transforms::Stack<E>>> {
  static constexpr bool value = true;
  using Source = S;
  using Example = E;
};

/// Stacks Examples, data and target side by side.
template <typename Example>
class ExampleRows {
 public:
  static constexpr bool kHasTarget = !std::is_same_v<Example, td::TensorExample>;

  explicit ExampleRows(std::size_t count) : data_(count), target_(count) {}
  void put(const Example& example, MessageWriter& to) {
    data_.put(example.data, to.out(), "rows0");
    if constexpr (kHasTarget) target_.put(example.target, to.out(), "rows1");
  }
  void finish(MessageWriter& to) {
    to.stacked(data_);
    if constexpr (kHasTarget) to.stacked(target_);
  }

 private:
  StackedRows data_, target_;
};

/// What the batch is to the user: stateful datasets wrap it in an optional.
template <typename D>
using BatchOf = typename std::conditional_t<D::is_stateful, typename D::BatchType,
                                            std::optional<typename D::BatchType>>::value_type;

/// get_batch() of `source`, of a stateful dataset or not.
template <typename Source>
auto get_batch(Source& source, std::span<const std::size_t> request) {
  using Asked = typename Source::BatchRequestType;
  static_assert(std::is_same_v<Asked, c10::ArrayRef<std::size_t>> || std::is_same_v<Asked, std::size_t>,
                "infeed::torch::data_loader: the dataset's get_batch() must take indices or a batch size.");
  const auto asked = [&]() -> Asked {
    if constexpr (std::is_same_v<Asked, std::size_t>)
      return request[0];
    else
      return {request.data(), request.size()};
  };
  if constexpr (Source::is_stateful)
    return source.get_batch(asked());
  else if constexpr (std::is_same_v<Asked, std::size_t>)
    return std::optional(source.get_batch(asked()));
  else
    return name_samples(request, [&] { return std::optional(source.get_batch(asked())); });
}

/// Source mapped by Stack.
template <typename Example, typename Source>
bool write_stacked(Source& source, std::span<const std::size_t> request, MessageWriter& to) {
  if constexpr (BySample<Source>::value) {
    to.value(true);
    ExampleRows<Example> rows(request.size());
    for (const std::size_t index : request)
      name_samples({&index, 1}, [&] { rows.put(BySample<Source>::get(source, index), to); });
    rows.finish(to);
  } else {
    auto samples = get_batch(source, request);
    to.value(samples.has_value());
    if (!samples) return false;
    ExampleRows<Example> rows(samples->size());
    for (Example& sample : *samples) rows.put(std::exchange(sample, {}), to);
    rows.finish(to);
  }
  return true;
}

/// Writes the batch of `request`; false where a stateful dataset has no more.
template <typename D>
bool write_batch(D& dataset, std::span<const std::size_t> request, MessageWriter& to) {
  if constexpr (StackedFrom<D>::value) {
    auto& source = const_cast<typename StackedFrom<D>::Source&>(dataset.dataset());
    return write_stacked<typename StackedFrom<D>::Example>(source, request, to);
  } else {
    auto batch = get_batch(dataset, request);
    to.value(batch.has_value());
    if (batch) Codec<BatchOf<D>>::write(to, *batch);
    return batch.has_value();
  }
}

/// torch::data gives each worker a copy of a stateless dataset; so do these, to threads. A forked worker has its own by
/// nature, and so has the caller.
template <typename D>
class Copies {
 public:
  explicit Copies(const D& original) : original_(original) {}

  /// Calls f(dataset) with a copy that nobody else uses meanwhile.
  template <typename F>
  void use(const F& f) {
    std::unique_ptr<D> copy = take();
    struct Return {
      Copies& copies;
      std::unique_ptr<D>& copy;
      ~Return() { copies.put_back(std::move(copy)); }
    } const back{*this, copy};
    f(*copy);
  }

 private:
  std::unique_ptr<D> take() {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) {
      free_.reserve(++made_);  // so that put_back() does not throw
      return std::make_unique<D>(original_);
    }
    std::unique_ptr<D> copy = std::move(free_.back());
    free_.pop_back();
    return copy;
  }
  void put_back(std::unique_ptr<D> copy) noexcept {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(copy));
  }

  const D& original_;
  std::mutex mutex_;
  std::size_t made_ = 0;
  std::vector<std::unique_ptr<D>> free_;
};

/// A stateful dataset is one for all workers, which call it side by side. A new epoch waits for those of the old one,
/// and what an old one asks for late gets nothing.
template <typename D>
class Shared {
 public:
  explicit Shared(D& dataset) : dataset_(dataset) {}

  void start_epoch(std::uint64_t epoch) {
    const std::unique_lock lock(mutex_);
    dataset_.reset();
    epoch_ = epoch;
  }
  bool write(const Request& request, MessageWriter& to) {
    const std::shared_lock lock(mutex_);
    if (request.epoch() == epoch_) return write_batch(dataset_, request.indices(), to);
    to.value(false);
    return false;
  }

 private:
  D& dataset_;
  std::shared_mutex mutex_;
  std::uint64_t epoch_ = 0;
};

/// The engine's collate: takes the indices of the batch for rows, and makes the batch.
template <typename D>
class BatchMaker final : public Collate {
 public:
  BatchMaker(D dataset, WorkerKind kind)
      : dataset_(std::move(dataset)), faults_(kind), shared_(dataset_), copies_(dataset_) {}

  void operator()(const Schema& /*schema*/, std::span<const std::vector<ArrayView>> rows,
                  CollateOutput& out) const override {
    const Request request(rows, faults_.kind());
    MessageWriter to(out);
    faults_.keep([&] {
      write(request, to);
      to.finish();
    });
  }
  void start_epoch(std::uint64_t epoch) const {
    if constexpr (D::is_stateful) shared_.start_epoch(epoch);
  }
  [[nodiscard]] Faults& faults() const noexcept { return faults_; }

 private:
  void write(const Request& request, MessageWriter& to) const {
    if constexpr (D::is_stateful) {
      shared_.write(request, to);
      return;
    }
    if constexpr (!D::is_stateful && std::is_copy_constructible_v<D>) {
      if (faults_.kind() == WorkerKind::kThread)
        return copies_.use([&](D& copy) { write_batch(copy, request.indices(), to); });
    }
    write_batch(dataset_, request.indices(), to);
  }

  mutable D dataset_;
  mutable Faults faults_;
  mutable Shared<D> shared_;
  mutable Copies<D> copies_;
};

}  // namespace infeed::torch
