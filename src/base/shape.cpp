#include "infeed/base/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "infeed/base/error.h"

namespace infeed {

Dims::Dims(std::span<const std::int64_t> values) : ndim_(static_cast<std::int32_t>(values.size())) {
  if (values.size() > kMaxDims)
    throw ConfigError(fmt::format("{} dimensions given, at most {} are supported.", values.size(), kMaxDims));
  std::copy(values.begin(), values.end(), values_.begin());
}

void Dims::push_back(std::int64_t value) {
  if (ndim_ == kMaxDims) throw ConfigError(fmt::format("an array has at most {} dimensions.", kMaxDims));
  values_[static_cast<std::size_t>(ndim_++)] = value;
}

std::int64_t Shape::numel() const {
  std::int64_t product = 1;
  for (const std::int64_t size : *this) {
    if (size < 0)
      throw ConfigError(fmt::format("shape {} has a negative size: its number of elements is not known.", str()));
    if (__builtin_mul_overflow(product, size, &product))
      throw ConfigError(fmt::format("shape {} has more elements than 64 bits count.", str()));
  }
  return product;
}

Shape Shape::with_front(std::int64_t size) const {
  Shape result;
  result.push_back(size);
  for (const std::int64_t value : *this) result.push_back(value);
  return result;
}

Shape Shape::without_front() const {
  if (empty()) throw ConfigError("a scalar has no first dimension to drop.");
  return Shape(span().subspan(1));
}

std::string Shape::str() const { return fmt::format("[{}]", fmt::join(begin(), end(), ", ")); }

Strides Strides::contiguous(const Shape& shape) noexcept {
  Strides strides(shape.span());
  std::int64_t step = 1;
  for (int dim = shape.ndim() - 1; dim >= 0; --dim) {
    strides[dim] = step;
    // Intentional: a product beyond 64 bits wraps; numel() is where such a shape is refused.
    static_cast<void>(__builtin_mul_overflow(step, std::max<std::int64_t>(shape[dim], 1), &step));
  }
  return strides;
}

}  // namespace infeed
