#include "infeed/train/tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "infeed/base/error.h"
#include "train/kernels/copy.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

Strides strides_for(const Shape& shape, MemoryFormat format) {
  if (format == MemoryFormat::kContiguous) return Strides::contiguous(shape);
  if (shape.ndim() != 4)
    throw ConfigError(fmt::format("channels_last needs 4 dimensions (N, C, H, W), the shape is {}.", shape.str()));
  return channels_last_strides(shape);
}

Tensor empty_strided(const Shape& shape, const Strides& strides, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(shape.numel()) * itemsize(dtype);
  return make_view(std::make_shared<Storage>(bytes, host_allocator()), 0, shape, strides, dtype);
}

// Bytes from the first to one past the last element.
std::size_t extent_bytes(const ArrayView& array) {
  std::int64_t last = 0;
  for (int dim = 0; dim < array.shape.ndim(); ++dim) {
    if (array.shape[dim] == 0) return 0;
    if (array.strides[dim] < 0) throw ConfigError("from_array: negative strides are not supported; copy the array.");
    last += (array.shape[dim] - 1) * array.strides[dim];
  }
  return static_cast<std::size_t>(last + 1) * itemsize(array.dtype);
}

}  // namespace

Tensor make_view(std::shared_ptr<Storage> storage, std::int64_t offset_bytes, const Shape& shape,
                 const Strides& strides, DType dtype) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::move(storage);
  impl->offset_bytes = offset_bytes;
  impl->shape = shape;
  impl->strides = strides;
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor alias(const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides) {
  const TensorImpl& impl = x.impl();
  const auto offset_bytes = impl.offset_bytes + offset * static_cast<std::int64_t>(itemsize(impl.dtype));
  return make_view(impl.storage, offset_bytes, shape, strides, impl.dtype);
}

Strides channels_last_strides(const Shape& shape) noexcept {
  const std::int64_t c = std::max<std::int64_t>(shape[1], 1);
  const std::int64_t w = std::max<std::int64_t>(shape[3], 1) * c;
  const std::int64_t h = std::max<std::int64_t>(shape[2], 1) * w;
  return {h, 1, w, c};
}

bool is_dense(const Shape& shape, const Strides& strides) noexcept {
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  std::array<int, kMaxDims> order{};
  int ndim = 0;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    if (shape[dim] == 0) return true;
    if (shape[dim] == 1) continue;
    int place = ndim++;  // sorted by insertion
    for (; place > 0 && strides[order[at(place - 1)]] > strides[dim]; --place) order[at(place)] = order[at(place - 1)];
    order[at(place)] = dim;
  }
  std::int64_t step = 1;
  for (int i = 0; i < ndim; ++i) {
    const int dim = order[at(i)];
    if (strides[dim] != step) return false;
    step *= shape[dim];
  }
  return true;
}

int wrap_dim(std::string_view op, int dim, int ndim) {
  if (dim < -ndim || dim >= ndim)
    throw IndexError(fmt::format("{}: dimension {} is outside [{}, {}) of a tensor with {} dimensions.", op, dim, -ndim,
                                 ndim, ndim));
  return dim < 0 ? dim + ndim : dim;
}

TensorImpl& Tensor::impl() const {
  if (impl_ == nullptr)
    throw ConfigError("an undefined tensor was used: make it with a factory such as Tensor::zeros.");
  return *impl_;
}

Tensor Tensor::empty(const Shape& shape, DType dtype, MemoryFormat format) {
  return empty_strided(shape, strides_for(shape, format), dtype);
}

Tensor Tensor::empty_like(const Tensor& other) {
  const TensorImpl& impl = other.impl();
  const bool keep = is_dense(impl.shape, impl.strides);
  return empty_strided(impl.shape, keep ? impl.strides : Strides::contiguous(impl.shape), impl.dtype);
}

Tensor Tensor::zeros(const Shape& shape, DType dtype) {
  Tensor result = empty(shape, dtype);
  std::memset(result.data_ptr(), 0, result.nbytes());
  return result;
}

Tensor Tensor::ones(const Shape& shape, DType dtype) { return full(shape, 1.0, dtype); }

Tensor Tensor::full(const Shape& shape, double value, DType dtype) {
  Tensor result = empty(shape, dtype);
  kernels::fill(result, value);
  return result;
}

Tensor Tensor::arange(std::int64_t n, DType dtype) {
  Tensor counts = empty({n}, DType::kInt64);
  for (std::int64_t i = 0; i < n; ++i) counts.data<std::int64_t>()[i] = i;
  return counts.to(dtype);
}

Tensor Tensor::copy_of(const void* values, std::int64_t count, DType dtype, const Shape& shape) {
  if (count != shape.numel())
    throw ConfigError(
        fmt::format("from_values: {} values given for shape {}, which needs {}.", count, shape.str(), shape.numel()));
  Tensor result = empty(shape, dtype);
  if (count != 0) std::memcpy(result.data_ptr(), values, result.nbytes());
  return result;
}

Tensor Tensor::from_array(const ArrayView& array, std::shared_ptr<void> owner) {
  if (array.device.type != DeviceType::kCPU)
    throw ConfigError("from_array: only arrays in CPU memory are supported; copy the array to the host first.");
  auto storage = std::make_shared<Storage>(array.data, extent_bytes(array), std::move(owner));
  return make_view(std::move(storage), 0, array.shape, array.strides, array.dtype);
}

const Shape& Tensor::shape() const { return impl().shape; }
const Strides& Tensor::strides() const { return impl().strides; }
std::int64_t Tensor::numel() const { return impl().shape.numel(); }
DType Tensor::dtype() const { return impl().dtype; }
DeviceId Tensor::device() const { return {}; }
std::int64_t Tensor::size(int dim) const { return shape()[wrap_dim("size", dim, ndim())]; }
std::size_t Tensor::nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(dtype()); }
std::byte* Tensor::data_ptr() const { return impl().storage->data() + impl().offset_bytes; }
const std::shared_ptr<Storage>& Tensor::storage() const { return impl().storage; }
std::uint32_t Tensor::version() const { return impl().storage->version(); }
bool Tensor::is_unique() const noexcept {
  return impl_ != nullptr && impl_.use_count() == 1 && impl_->storage.use_count() == 1;
}

bool Tensor::is_contiguous(MemoryFormat format) const {
  const TensorImpl& t = impl();
  if (format == MemoryFormat::kChannelsLast && t.shape.ndim() != 4) return false;
  const Strides wanted = strides_for(t.shape, format);
  for (int dim = 0; dim < t.shape.ndim(); ++dim) {
    if (t.shape[dim] == 0) return true;
    if (t.shape[dim] != 1 && t.strides[dim] != wanted[dim]) return false;
  }
  return true;
}

ArrayView Tensor::array() const {
  ArrayView view(data_ptr(), dtype(), shape(), device());
  view.strides = strides();
  return view;
}

double Tensor::item_value() const {
  if (numel() != 1)
    throw ConfigError(
        fmt::format("item: a tensor of shape {} has {} elements, one is needed.", shape().str(), numel()));
  Tensor value = empty({}, DType::kFloat64);
  kernels::copy(value, detach().reshape({}));
  return *value.data<double>();
}

}  // namespace infeed
