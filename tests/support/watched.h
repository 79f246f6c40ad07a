#pragma once
// A dataset that looks where it writes.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <set>

#include "fake_cudart/fake_cudart.h"
#include "infeed/dataset/dataset.h"

namespace infeed::testing {

/// int32 [length] full of epoch * size + index. For workers of this process.
class Watched final : public Dataset {
 public:
  Watched(std::int64_t size, std::int64_t length) : size_(size), schema_{{"x", DType::kInt32, {length}}} {}

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override {
    const ArrayView& x = row[0];
    if (fake::in_use(x.data, x.nbytes(), true)) ++written_in_use_;
    std::fill_n(x.as<std::int32_t>(), x.numel(), value(row.context().epoch, row.index()));
    const std::lock_guard lock(mutex_);
    written_.insert(x.data);
  }

  [[nodiscard]] std::int32_t value(std::uint64_t epoch, std::int64_t index) const {
    return static_cast<std::int32_t>(static_cast<std::int64_t>(epoch) * size_ + index);
  }
  /// Rows that were written while the device read the memory.
  [[nodiscard]] int written_in_use() const { return written_in_use_; }
  /// Where rows were written.
  [[nodiscard]] std::set<const std::byte*> written() const {
    const std::lock_guard lock(mutex_);
    return written_;
  }

 private:
  std::int64_t size_;
  Schema schema_;
  mutable std::atomic<int> written_in_use_{0};
  mutable std::mutex mutex_;
  mutable std::set<const std::byte*> written_;
};

}  // namespace infeed::testing
