#include "infeed/train/tensor/tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "infeed/train/autograd/grad_mode.h"
#include "train/kernels/copy.h"
#include "train/tensor/check.h"
#include "train/tensor/device_memory.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

Strides strides_for(const Shape& shape, MemoryFormat format) {
  if (format != MemoryFormat::kChannelsLast) return Strides::contiguous(shape);
  require(shape.ndim() == 4, "required rank 4 tensor to use channels_last format");
  return channels_last_strides(shape);
}

std::shared_ptr<Storage> storage_for(std::size_t bytes, DeviceId device) {
  if (device.type == DeviceType::kMeta) return std::make_shared<Storage>(bytes, device);
  if (device.type != DeviceType::kCPU) return std::make_shared<Storage>(bytes, DeviceMemory::of(device));
  return std::make_shared<Storage>(bytes, host_allocator());
}

Tensor make_dense(const Shape& shape, const Strides& strides, DType dtype, DeviceId device) {
  std::size_t bytes = 0;
  require(!__builtin_mul_overflow(static_cast<std::size_t>(shape.numel()), itemsize(dtype), &bytes),
          "Storage size calculation overflowed with sizes={}", shape);
  return make_view(storage_for(bytes, device), 0, shape, strides, dtype);
}

// Bytes from the first to one past the last element.
std::size_t extent_bytes(const ArrayView& array) {
  std::int64_t last = 0;
  for (int dim = 0; dim < array.shape.ndim(); ++dim) {
    if (array.shape[dim] == 0) return 0;
    if (array.strides[dim] < 0)
      throw ValueError(
          "At least one stride in the given array is negative, and tensors with negative strides are not currently "
          "supported. (You can probably work around this by making a copy of your array with array.copy().)");
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
  impl->inference = is_inference_mode_enabled();
  return Tensor(std::move(impl));
}

Tensor alias(const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides) {
  const TensorImpl& impl = x.impl();
  const auto offset_bytes = impl.offset_bytes + offset * static_cast<std::int64_t>(itemsize(impl.dtype));
  return make_view(impl.storage, offset_bytes, shape, strides, impl.dtype);
}

Tensor tracked_alias(const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides, ViewKind kind) {
  Tensor out = alias(x, offset, shape, strides);
  const TensorImpl& of = x.impl();
  out.impl().inference = of.inference;
  if (is_inference_mode_enabled()) return out;
  if (!grad_enabled()) kind = ViewKind::kNoGrad;
  if (of.view && of.view->kind != ViewKind::kDefault) kind = of.view->kind;
  out.impl().view = std::make_unique<ViewOf>(ViewOf{of.view ? of.view->base : x, kind, of.storage->version()});
  return out;
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

bool overlaps_itself(const Shape& shape, const Strides& strides) noexcept {
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    if (strides[dim] == 0 && shape[dim] > 1) return true;
  }
  return false;
}

int wrap_dim(int dim, int ndim) {
  const int range = std::max(ndim, 1);
  require<IndexError>(dim >= -range && dim < range,
                      "Dimension out of range (expected to be in range of [{}, {}], but got {})", -range, range - 1,
                      dim);
  return dim < 0 ? dim + range : dim;
}

TensorImpl& Tensor::impl() const {
  if (impl_ == nullptr) [[unlikely]]
    throw RuntimeError("an undefined tensor was used: make it with a factory such as Tensor::zeros.");
  return *impl_;
}

Tensor Tensor::wrapped(const Scalar& value) {
  const auto bits = value.is_float() ? std::bit_cast<std::uint64_t>(value.to_double())
                                     : static_cast<std::uint64_t>(value.to_int());  // a bool's byte comes first
  Tensor result = make_view(std::make_shared<Storage>(bits), 0, {}, {}, value.dtype());
  result.impl_->wrapped_number = true;
  return result;
}

Tensor Tensor::empty(const Shape& shape, const TensorOptions& options, MemoryFormat format) {
  for (const std::int64_t size : shape)
    require(size >= 0, "Trying to create tensor with negative dimension {}: {}", size, shape);
  Tensor result = make_dense(shape, strides_for(shape, format), options.dtype.value_or(default_dtype()),
                             options.device.value_or(default_device()));
  if (options.requires_grad) result.set_requires_grad();
  return result;
}

Tensor Tensor::empty_strided(const Shape& shape, const Strides& strides, const TensorOptions& options) {
  require(shape.ndim() == strides.ndim(), "mismatch in length of strides and shape");
  std::int64_t extent = shape.numel() == 0 ? 0 : 1;
  for (int dim = 0; dim < shape.ndim(); ++dim) extent += extent == 0 ? 0 : (shape[dim] - 1) * strides[dim];
  const DType dtype = options.dtype.value_or(default_dtype());
  const std::size_t bytes = static_cast<std::size_t>(extent) * itemsize(dtype);
  return make_view(storage_for(bytes, options.device.value_or(default_device())), 0, shape, strides, dtype);
}

// Dense operands keep their strides; others their order of dimensions where that is channels last.
Tensor Tensor::empty_like(const Tensor& other, std::optional<DType> dtype) {
  const TensorImpl& impl = other.impl();
  const bool keep = is_dense(impl.shape, impl.strides);
  return make_dense(impl.shape, keep ? impl.strides : Strides::contiguous(impl.shape), dtype.value_or(impl.dtype),
                    impl.storage->device());
}

Tensor Tensor::zeros(const Shape& shape, const TensorOptions& options) {
  Tensor result = empty(shape, options);
  if (result.storage()->memory() != nullptr)
    kernels::fill(result, 0);
  else if (result.nbytes() != 0 && !result.is_meta())
    std::memset(result.data_ptr(), 0, result.nbytes());
  return result;
}

Tensor Tensor::ones(const Shape& shape, const TensorOptions& options) { return full(shape, 1.0, options); }

Tensor Tensor::full(const Shape& shape, const Scalar& value, const TensorOptions& options) {
  Tensor result = empty(shape, options);
  kernels::fill(result, value);
  return result;
}

Tensor Tensor::copy_of(const void* values, std::int64_t count, DType dtype, const Shape& shape) {
  require(count == shape.numel(), "from_values: {} values given for shape {}, which needs {}.", count, shape,
          shape.numel());
  Tensor result = empty(shape, TensorOptions(dtype, DeviceId{}));
  if (count != 0) std::memcpy(result.data_ptr(), values, result.nbytes());
  return result;
}

Tensor Tensor::from_array(const ArrayView& array, std::shared_ptr<void> owner) {
  auto storage = array.device.type == DeviceType::kCPU
                     ? std::make_shared<Storage>(array.data, extent_bytes(array), std::move(owner))
                     : std::make_shared<Storage>(array.data, extent_bytes(array), std::move(owner),
                                                 DeviceMemory::of(array.device));
  return make_view(std::move(storage), 0, array.shape, array.strides, array.dtype);
}

const Shape& Tensor::shape() const { return impl().shape; }
const Strides& Tensor::strides() const { return impl().strides; }
std::int64_t Tensor::numel() const { return impl().shape.numel(); }
DType Tensor::dtype() const { return impl().dtype; }
DeviceId Tensor::device() const { return impl().storage->device(); }
bool Tensor::is_meta() const { return device().type == DeviceType::kMeta; }
bool Tensor::is_wrapped_number() const { return impl().wrapped_number; }
bool Tensor::is_inference() const { return impl().inference; }
std::size_t Tensor::nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(dtype()); }
const std::shared_ptr<Storage>& Tensor::storage() const { return impl().storage; }
void*& Tensor::binding_slot() const { return impl().binding_slot; }

std::int64_t Tensor::size(int dim) const {
  require<IndexError>(ndim() > 0, "Dimension specified as {} but tensor has no dimensions", dim);
  return shape()[wrap_dim(dim, ndim())];
}

std::byte* Tensor::data_ptr(const char* asker) const {
  const TensorImpl& t = impl();
  std::byte* const data = t.storage->data(asker);
  return data == nullptr ? nullptr : data + t.offset_bytes;
}

std::byte* Tensor::device_ptr() const {
  const TensorImpl& t = impl();
  return t.storage->address() == nullptr ? nullptr : t.storage->address() + t.offset_bytes;
}

std::int64_t Tensor::storage_offset() const {
  return impl().offset_bytes / static_cast<std::int64_t>(itemsize(dtype()));
}

std::uint32_t Tensor::version() const {
  require(!is_inference(), "Inference tensors do not track version counter.");
  return impl().storage->version();
}

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

ArrayView Tensor::array(const char* asker) const {
  ArrayView view(data_ptr(asker), dtype(), shape(), device());
  view.strides = strides();
  return view;
}

Scalar Tensor::item_scalar() const {
  require(numel() == 1, "a Tensor with {} elements cannot be converted to Scalar", numel());
  require(!is_meta(), "Tensor.item() cannot be called on meta tensors");
  if (is_floating_point(dtype())) {
    double value = 0.0;
    kernels::copy(from_array(ArrayView(&value, DType::kFloat64, {}), nullptr), alias(*this, 0, {}, {}));
    return value;
  }
  std::int64_t value = 0;
  kernels::copy(from_array(ArrayView(&value, DType::kInt64, {}), nullptr), alias(*this, 0, {}, {}));
  return dtype() == DType::kBool ? Scalar(value != 0) : Scalar(value);
}

}  // namespace infeed
