#pragma once
/// Sizes and strides of an array, held inline: no allocation, trivially copyable.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "infeed/base/export.h"

namespace infeed {

inline constexpr int kMaxDims = 8;

/// Up to kMaxDims integers: the base of Shape and Strides. Longer lists throw ConfigError.
class INFEED_API Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const std::int64_t> values);

  [[nodiscard]] int ndim() const noexcept { return ndim_; }
  [[nodiscard]] bool empty() const noexcept { return ndim_ == 0; }
  [[nodiscard]] std::int64_t operator[](int dim) const noexcept { return values_[static_cast<std::size_t>(dim)]; }
  [[nodiscard]] std::int64_t& operator[](int dim) noexcept { return values_[static_cast<std::size_t>(dim)]; }
  [[nodiscard]] const std::int64_t* begin() const noexcept { return values_.data(); }
  [[nodiscard]] const std::int64_t* end() const noexcept { return values_.data() + ndim_; }
  [[nodiscard]] std::span<const std::int64_t> span() const noexcept {
    return {begin(), static_cast<std::size_t>(ndim_)};
  }

  /// Appends one dimension; throws ConfigError at kMaxDims.
  void push_back(std::int64_t value);

  friend bool operator==(const Dims& a, const Dims& b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  std::array<std::int64_t, kMaxDims> values_{};
  std::int32_t ndim_ = 0;
};

/// Sizes per dimension. A scalar has no dimensions and one element.
class INFEED_API Shape : public Dims {
 public:
  using Dims::Dims;

  /// Product of the sizes; 1 for a scalar. Throws ConfigError where it overflows or a size is negative.
  [[nodiscard]] std::int64_t numel() const;

  /// This shape with `size` put in front: rows -> batch.
  [[nodiscard]] Shape with_front(std::int64_t size) const;

  /// This shape without its first dimension.
  [[nodiscard]] Shape without_front() const;

  /// "[3, 224, 224]"
  [[nodiscard]] std::string str() const;
};

/// Elements (not bytes) from one item to the next, per dimension.
class INFEED_API Strides : public Dims {
 public:
  using Dims::Dims;

  /// C order, as PyTorch: a dimension of size 0 counts as 1.
  [[nodiscard]] static Strides contiguous(const Shape& shape) noexcept;
};

}  // namespace infeed
