#pragma once
/// A ready batch: named arrays over memory that the batch owns.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"

namespace infeed {

struct NamedArray {
  std::string name;
  ArrayView array;
};

/// An array of a batch that keeps the batch's memory: may outlive the batch, and the loader.
struct BatchArray : ArrayView {
  std::shared_ptr<void> owner;  ///< whoever holds a copy holds the memory
};

/// Named arrays, each with the batch dimension first (ragged fields: see collate/ragged.h), and the owner of their
/// memory.
///
/// Memory: the arrays lie in the loader's arena and are writable. They stay valid, unchanged by anyone, until the last
/// copy of owner() is gone, also after the loader's end; then the memory serves a later batch. Holding batches holds
/// memory. Threads: a value; may be dropped on any thread, in any order.
class INFEED_API Batch {
 public:
  Batch() = default;
  Batch(std::vector<NamedArray> arrays, std::vector<std::int64_t> indices, std::uint64_t epoch, std::uint64_t number,
        std::shared_ptr<void> owner)
      : arrays_(std::move(arrays)),
        indices_(std::move(indices)),
        epoch_(epoch),
        number_(number),
        owner_(std::move(owner)) {}

  /// Samples in the batch.
  [[nodiscard]] std::int64_t size() const noexcept { return static_cast<std::int64_t>(indices_.size()); }
  /// Array of that name; throws IndexError naming the known ones.
  [[nodiscard]] BatchArray at(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const noexcept;
  /// All of them, in the order of the schema (a collate may add some). Borrowed from this batch.
  [[nodiscard]] const std::vector<NamedArray>& arrays() const noexcept { return arrays_; }

  /// Dataset index of each sample, in batch order. For streams: the row's number within its shard.
  [[nodiscard]] const std::vector<std::int64_t>& indices() const noexcept { return indices_; }
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  /// Position within the epoch, from 0, in sampler order.
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  /// Keeps the memory alive: hand a copy to whatever outlives the batch (a Tensor, a DLPack capsule).
  [[nodiscard]] const std::shared_ptr<void>& owner() const noexcept { return owner_; }

  /// Gives this batch's hold on the memory up; the arrays are gone.
  void release() noexcept;

 private:
  std::vector<NamedArray> arrays_;
  std::vector<std::int64_t> indices_;
  std::uint64_t epoch_ = 0;
  std::uint64_t number_ = 0;
  std::shared_ptr<void> owner_;
};

}  // namespace infeed
