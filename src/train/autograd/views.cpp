// Views and copies of a tensor, with their backward.

#include <algorithm>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"
#include "train/autograd/record.h"
#include "train/kernels/copy.h"
#include "train/tensor/check.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

template <class Formula>
Tensor view_of(std::string_view name, const Tensor& x, std::int64_t offset, const Shape& shape, const Strides& strides,
               Formula formula) {
  return record(name, {x}, tracked_alias(x, offset, shape, strides), {}, std::move(formula));
}

Tensor reshaped(std::string_view name, const Tensor& x, const Shape& shape, const Strides& strides) {
  return view_of(name, x, 0, shape, strides, [from = x.shape()](const Pass& p) { return p.g().reshape(from); });
}

// clone, contiguous, to: the gradient passes; the engine converts it.
Tensor copied(std::string_view name, const Tensor& x, const Tensor& out) {
  kernels::copy(out, x);
  return record(name, {x}, out, {}, [](const Pass& p) { return p.g(); });
}

// Zeros of `shape` with the gradient at the place of a slice.
Tensor placed(const Tensor& g, const Shape& shape, int dim, std::int64_t start, std::int64_t step) {
  Tensor whole = Tensor::zeros(shape, g.options());
  Tensor part = whole.slice(dim, {start, start + (g.size(dim) - 1) * step + 1, step});
  part.copy_(g);
  return whole;
}

Tensor empty_in(const Tensor& x, MemoryFormat format, const TensorOptions& options) {
  if (format != MemoryFormat::kPreserve) return Tensor::empty(x.shape(), options, format);
  if (options.device == x.device()) return Tensor::empty_like(x, options.dtype);
  return Tensor::empty(x.shape(), options);
}

}  // namespace

Tensor Tensor::view(const Shape& shape) const {
  const Shape resolved = resolve_shape(this->shape(), shape);
  const auto strides = view_strides(this->shape(), this->strides(), resolved);
  require(strides.has_value(),
          "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
          "contiguous subspaces). Use .reshape(...) instead.");
  return reshaped("ViewBackward0", *this, resolved, *strides);
}

Tensor Tensor::reshape(const Shape& shape) const {
  const Shape resolved = resolve_shape(this->shape(), shape);
  const auto strides = view_strides(this->shape(), this->strides(), resolved);
  return strides ? reshaped("ViewBackward0", *this, resolved, *strides)
                 : clone(MemoryFormat::kContiguous).view(resolved);
}

Tensor Tensor::flatten(int start_dim, int end_dim) const {
  if (ndim() == 0) return reshape({1});
  const int first = wrap_dim(start_dim, ndim());
  const int last = wrap_dim(end_dim, ndim());
  require(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (first == last) return *this;
  Shape flat;
  std::int64_t joined = 1;
  for (int dim = 0; dim < ndim(); ++dim) {
    if (dim >= first && dim <= last) joined *= shape()[dim];
    if (dim < first || dim > last) flat.push_back(shape()[dim]);
    if (dim == last) flat.push_back(joined);
  }
  return reshape(flat);
}

Tensor Tensor::unflatten(int dim, const Shape& sizes) const {
  const int at = wrap_dim(dim, ndim());
  const Shape parts = resolve_shape({shape()[at]}, sizes);
  Shape wider;
  for (int i = 0; i < ndim(); ++i) {
    if (i != at) wider.push_back(shape()[i]);
    for (int k = 0; i == at && k < parts.ndim(); ++k) wider.push_back(parts[k]);
  }
  return view(wider);
}

namespace {

Tensor permuted(std::string_view name, const Tensor& x, const Dims& order) {
  Dims inverse = order;
  Shape shape;
  Strides strides;
  for (int i = 0; i < x.ndim(); ++i) {
    const auto dim = static_cast<int>(order[i]);
    inverse[dim] = i;
    shape.push_back(x.shape()[dim]);
    strides.push_back(x.strides()[dim]);
  }
  return view_of(name, x, 0, shape, strides, [inverse](const Pass& p) { return p.g().permute(inverse); });
}

}  // namespace

Tensor Tensor::permute(const Dims& dims) const {
  require(
      dims.ndim() == ndim(),
      "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
      "of dimensions i.e. input.dim() = {} is not equal to len(dims) = {}",
      ndim(), dims.ndim());
  Dims order = dims;
  for (int i = 0; i < ndim(); ++i) {
    order[i] = wrap_dim(static_cast<int>(dims[i]), ndim());
    require(std::find(order.begin(), order.begin() + i, order[i]) == order.begin() + i,
            "permute(): duplicate dims are not allowed.");
  }
  return permuted("PermuteBackward0", *this, order);
}

Tensor Tensor::transpose(int dim0, int dim1) const {
  Dims order;
  for (int i = 0; i < ndim(); ++i) order.push_back(i);
  const int first = wrap_dim(dim0, ndim());
  const int second = wrap_dim(dim1, ndim());
  if (ndim() != 0) std::swap(order[first], order[second]);
  return permuted("TransposeBackward0", *this, order);
}

Tensor Tensor::t() const {
  require(ndim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", ndim());
  if (ndim() < 2) return *this;
  return permuted("TBackward0", *this, {1, 0});
}

Tensor Tensor::slice(int dim, const Slice& slice) const {
  require(ndim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  require<ValueError>(slice.step > 0, "step must be greater than zero");
  const int along = wrap_dim(dim, ndim());
  const std::int64_t size = shape()[along];
  const auto place = [size](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + size : i, 0, size); };
  const std::int64_t start = place(slice.start.value_or(0));
  const std::int64_t stop = std::max(start, place(slice.stop.value_or(size)));
  const std::int64_t step = slice.step;
  Shape narrowed = shape();
  Strides steps = strides();
  narrowed[along] = (stop - start + step - 1) / step;
  steps[along] *= step;
  return view_of(
      "SliceBackward0", *this, start * strides()[along], narrowed, steps,
      [from = shape(), along, start, step](const Pass& p) { return placed(p.g(), from, along, start, step); });
}

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  const int along = wrap_dim(dim, ndim());
  require(length >= 0, "narrow(): length must be non-negative.");
  const std::int64_t size = this->size(along);
  require<IndexError>(start >= -size && start <= size,
                      "start out of range (expected to be in range of [{}, {}], but got {})", -size, size, start);
  const std::int64_t first = start < 0 ? start + size : start;
  require(first <= size - length, "start ({}) + length ({}) exceeds dimension size ({}).", first, length, size);
  return slice(along, {first, first + length});
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  require<IndexError>(ndim() > 0, "select() cannot be applied to a 0-dim tensor.");
  const int along = wrap_dim(dim, ndim());
  const std::int64_t size = shape()[along];
  require<IndexError>(index >= -size && index < size,
                      "select(): index {} out of range for tensor of size {} at dimension {}", index, shape(), along);
  const std::int64_t at = index < 0 ? index + size : index;
  Shape rest;
  Strides steps;
  for (int i = 0; i < ndim(); ++i) {
    if (i == along) continue;
    rest.push_back(shape()[i]);
    steps.push_back(strides()[i]);
  }
  return view_of(
      "SelectBackward0", *this, at * strides()[along], rest, steps,
      [from = shape(), along, at](const Pass& p) { return placed(p.g().unsqueeze(along), from, along, at, 1); });
}

Tensor Tensor::unsqueeze(int dim) const {
  const int at = wrap_dim(dim, ndim() + 1);
  Shape wider;
  Strides steps;
  for (int i = 0; i <= ndim(); ++i) {
    if (i == at) {
      wider.push_back(1);
      steps.push_back(i < ndim() ? shape()[i] * strides()[i] : 1);
    }
    if (i == ndim()) break;
    wider.push_back(shape()[i]);
    steps.push_back(strides()[i]);
  }
  return view_of("UnsqueezeBackward0", *this, 0, wider, steps, [at](const Pass& p) { return p.g().squeeze(at); });
}

namespace {

template <class Drop>
Tensor squeezed(std::string_view name, const Tensor& x, Drop&& drop) {
  Shape narrower;
  Strides steps;
  for (int i = 0; i < x.ndim(); ++i) {
    if (x.shape()[i] == 1 && drop(i)) continue;
    narrower.push_back(x.shape()[i]);
    steps.push_back(x.strides()[i]);
  }
  return reshaped(name, x, narrower, steps);
}

}  // namespace

Tensor Tensor::squeeze() const {
  return squeezed("SqueezeBackward0", *this, [](int) { return true; });
}

Tensor Tensor::squeeze(int dim) const {
  return squeezed("SqueezeBackward1", *this, [at = wrap_dim(dim, ndim())](int i) { return i == at; });
}

Tensor Tensor::expand(const Shape& given) const {
  require(given.ndim() >= ndim(),
          "expand({}{{{}}}, size={}): the number of sizes provided ({}) must be greater or equal to the number of "
          "dimensions "
          "in the tensor ({})",
          legacy_name(dtype()), shape(), given, given.ndim(), ndim());
  Shape target = given;
  for (int dim = 0; dim < given.ndim(); ++dim) {
    const int own = dim - (given.ndim() - ndim());
    if (given[dim] == -1) {
      require(own >= 0,
              "expand({}{{{}}}, size={}): the expanded size of the tensor (-1) isn't allowed in a leading, "
              "non-existing dimension {}",
              legacy_name(dtype()), shape(), given, dim);
      target[dim] = shape()[own];
    }
    require(
        own < 0 || target[dim] == shape()[own] || shape()[own] == 1,
        "The expanded size of the tensor ({}) must match the existing size ({}) at non-singleton dimension {}.  Target "
        "sizes: {}.  Tensor sizes: {}",
        given[dim], own < 0 ? 0 : shape()[own], dim, given, shape());
  }
  return view_of("ExpandBackward0", *this, 0, target, broadcast_strides(shape(), strides(), target),
                 [from = shape()](const Pass& p) { return sum_to(p.g(), from); });
}

Tensor Tensor::unfold(int dim, std::int64_t size, std::int64_t step) const {
  const int along = wrap_dim(dim, ndim());
  const std::int64_t length = ndim() == 0 ? 1 : shape()[along];
  require(size >= 0 && size <= length, "maximum size for tensor at dimension {} is {} but size is {}", along, length,
          size);
  require(step > 0, "step is {} but must be > 0", step);
  Shape windows = shape();
  Strides steps = strides();
  const std::int64_t stride = ndim() == 0 ? 1 : strides()[along];
  if (ndim() != 0) {
    windows[along] = (length - size) / step + 1;
    steps[along] *= step;
  }
  windows.push_back(size);
  steps.push_back(stride);
  const Shape from = shape();
  return view_of("UnfoldBackward0", *this, 0, windows, steps, [from, along, step](const Pass& p) {
    Tensor whole = Tensor::zeros(from, p.g().options());
    for (std::int64_t i = 0; i < p.g().size(-1); ++i) {  // windows may overlap: one position at a time
      whole = whole + placed(p.g().select(-1, i), from, along, i, step);
    }
    return whole;
  });
}

Tensor Tensor::as_strided(const Shape& shape, const Strides& strides,
                          std::optional<std::int64_t> storage_offset) const {
  require(shape.ndim() == strides.ndim(), "mismatch in length of strides and shape");
  const std::int64_t from = this->storage_offset();
  const std::int64_t offset = storage_offset.value_or(from) - from;
  std::int64_t last = offset + from;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    require(strides[dim] >= 0, "as_strided: Negative strides are not supported at the moment, got strides: {}",
            Shape(strides.span()));
    last += shape[dim] == 0 ? 0 : (shape[dim] - 1) * strides[dim];
  }
  const auto available = static_cast<std::int64_t>(storage()->nbytes() / itemsize(dtype()));
  require(
      offset + from >= 0 && (shape.numel() == 0 || last < available),
      "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a storage size of {} are out of "
      "bounds for storage of size {}",
      shape, Shape(strides.span()), offset + from, itemsize(dtype()),
      (last + 1) * static_cast<std::int64_t>(itemsize(dtype())), storage()->nbytes());
  return view_of("AsStridedBackward0", *this, offset, shape, strides,
                 [from_shape = this->shape(), from_strides = this->strides(), shape, strides, offset](const Pass& p) {
                   return as_strided_backward(p.g(), from_shape, from_strides, shape, strides, offset);
                 });
}

Tensor Tensor::diagonal(std::int64_t offset, int dim0, int dim1) const {
  const int first = wrap_dim(dim0, ndim());
  const int second = wrap_dim(dim1, ndim());
  require(first != second, "diagonal dimensions cannot be identical {}, {}", dim0, dim1);
  const std::int64_t rows = shape()[first] - std::max<std::int64_t>(-offset, 0);
  const std::int64_t columns = shape()[second] - std::max<std::int64_t>(offset, 0);
  Shape rest;
  Strides steps;
  for (int i = 0; i < ndim(); ++i) {
    if (i == first || i == second) continue;
    rest.push_back(shape()[i]);
    steps.push_back(strides()[i]);
  }
  rest.push_back(std::max<std::int64_t>(std::min(rows, columns), 0));
  steps.push_back(strides()[first] + strides()[second]);
  const std::int64_t skip = offset >= 0 ? offset * strides()[second] : -offset * strides()[first];
  return view_of("DiagonalBackward0", *this, skip, rest, steps, [from = shape(), offset, first, second](const Pass& p) {
    Tensor whole = Tensor::zeros(from, p.g().options());
    whole.diagonal(offset, first, second).copy_(p.g());
    return whole;
  });
}

Tensor Tensor::contiguous(MemoryFormat format) const { return is_contiguous(format) ? *this : clone(format); }

Tensor Tensor::clone(MemoryFormat format) const {
  return copied("CloneBackward0", *this, empty_in(*this, format, options()));
}

Tensor Tensor::to(DType dtype, bool copy) const { return to(TensorOptions(dtype, device()), copy); }

Tensor Tensor::to(const TensorOptions& options, bool copy) const {
  const TensorOptions wanted(options.dtype.value_or(dtype()), options.device.value_or(device()));
  if (!copy && wanted.dtype == dtype() && wanted.device == device()) return *this;
  if (is_meta() && wanted.device != device()) throw NotImplementedError("Cannot copy out of meta tensor; no data!");
  const bool image = ndim() == 4 && !is_contiguous() && is_contiguous(MemoryFormat::kChannelsLast);
  const Tensor out = is_dense(shape(), strides()) || !image ? empty_in(*this, MemoryFormat::kPreserve, wanted)
                                                            : empty(shape(), wanted, MemoryFormat::kChannelsLast);
  kernels::copy(out, *this);
  return record("ToCopyBackward0", {*this}, out, {},
                [from = device()](const Pass& p) { return p.g().to(TensorOptions(from)); });
}

}  // namespace infeed
