// Views and copies of a tensor, with their backward.

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "train/kernels/copy.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

using Grads = std::span<Tensor>;

struct ReshapeBackward final : Node {
  explicit ReshapeBackward(const Shape& from) : Node("reshape"), shape(from) {}
  void backward(Grads grads, Grads inputs) override { inputs[0] = grads[0].reshape(shape); }
  Shape shape;
};

struct PermuteBackward final : Node {
  explicit PermuteBackward(const Dims& forward) : Node("permute"), inverse(forward) {
    for (int i = 0; i < forward.ndim(); ++i) inverse[static_cast<int>(forward[i])] = i;
  }
  void backward(Grads grads, Grads inputs) override { inputs[0] = grads[0].permute(inverse); }
  Dims inverse;
};

struct NarrowBackward final : Node {
  NarrowBackward(const Tensor& x, int along, std::int64_t from)
      : Node("narrow"), shape(x.shape()), dtype(x.dtype()), dim(along), start(from) {}
  void backward(Grads grads, Grads inputs) override {
    inputs[0] = Tensor::zeros(shape, dtype);
    inputs[0].narrow(dim, start, grads[0].size(dim)).copy_(grads[0]);
  }
  Shape shape;
  DType dtype;
  int dim;
  std::int64_t start;
};

struct ExpandBackward final : Node {
  explicit ExpandBackward(const Shape& from) : Node("expand"), shape(from) {}
  void backward(Grads grads, Grads inputs) override { inputs[0] = sum_to(grads[0], shape); }
  Shape shape;
};

// clone, contiguous, to: the gradient passes, in the input's dtype.
struct CopyBackward final : Node {
  explicit CopyBackward(DType from) : Node("copy"), dtype(from) {}
  void backward(Grads grads, Grads inputs) override { inputs[0] = grads[0].to(dtype); }
  DType dtype;
};

Tensor reshaped(const Tensor& x, const Shape& shape, const Strides& strides) {
  Tensor out = alias(x, 0, shape, strides);
  if (needs_graph({x})) connect(std::make_shared<ReshapeBackward>(x.shape()), {x}, out);
  return out;
}

Tensor copied(const Tensor& x, Tensor out) {
  kernels::copy(out, x);
  if (is_floating_point(out.dtype()) && needs_graph({x})) connect(std::make_shared<CopyBackward>(x.dtype()), {x}, out);
  return out;
}

}  // namespace

Tensor Tensor::view(const Shape& shape) const {
  const Shape resolved = resolve_shape("view", this->shape(), shape);
  const auto strides = view_strides(this->shape(), this->strides(), resolved);
  if (!strides)
    throw ConfigError(fmt::format("view: shape {} with strides {} cannot be seen as {} without a copy; use reshape.",
                                  this->shape().str(), Shape(this->strides().span()).str(), resolved.str()));
  return reshaped(*this, resolved, *strides);
}

Tensor Tensor::reshape(const Shape& shape) const {
  const Shape resolved = resolve_shape("reshape", this->shape(), shape);
  const auto strides = view_strides(this->shape(), this->strides(), resolved);
  return strides ? reshaped(*this, resolved, *strides) : contiguous().view(resolved);
}

Tensor Tensor::flatten(int start_dim, int end_dim) const {
  if (ndim() == 0) return reshape({1});
  const int first = wrap_dim("flatten", start_dim, ndim());
  const int last = wrap_dim("flatten", end_dim, ndim());
  if (first > last) throw ConfigError(fmt::format("flatten: start_dim {} lies behind end_dim {}.", start_dim, end_dim));
  Shape flat;
  std::int64_t joined = 1;
  for (int dim = 0; dim < ndim(); ++dim) {
    if (dim >= first && dim <= last) joined *= shape()[dim];
    if (dim < first || dim > last) flat.push_back(shape()[dim]);
    if (dim == last) flat.push_back(joined);
  }
  return reshape(flat);
}

Tensor Tensor::permute(const Dims& dims) const {
  if (dims.ndim() != ndim())
    throw ConfigError(fmt::format("permute: {} dimensions given for shape {}.", dims.ndim(), shape().str()));
  Dims order = dims;
  Shape permuted;
  Strides steps;
  for (int i = 0; i < ndim(); ++i) {
    const int dim = wrap_dim("permute", static_cast<int>(dims[i]), ndim());
    if (std::find(order.begin(), order.begin() + i, dim) != order.begin() + i)
      throw ConfigError(fmt::format("permute: dimension {} is given twice.", dim));
    order[i] = dim;
    permuted.push_back(shape()[dim]);
    steps.push_back(strides()[dim]);
  }
  Tensor out = alias(*this, 0, permuted, steps);
  if (needs_graph({*this})) connect(std::make_shared<PermuteBackward>(order), {*this}, out);
  return out;
}

Tensor Tensor::transpose(int dim0, int dim1) const {
  Dims order;
  for (int i = 0; i < ndim(); ++i) order.push_back(i);
  std::swap(order[wrap_dim("transpose", dim0, ndim())], order[wrap_dim("transpose", dim1, ndim())]);
  return permute(order);
}

Tensor Tensor::narrow(int dim, std::int64_t start, std::int64_t length) const {
  const int along = wrap_dim("narrow", dim, ndim());
  if (start < 0 || length < 0 || start > shape()[along] - length)
    throw IndexError(fmt::format("narrow: [{}, {}) is outside dimension {} of shape {}.", start, start + length, along,
                                 shape().str()));
  Shape narrowed = shape();
  narrowed[along] = length;
  Tensor out = alias(*this, start * strides()[along], narrowed, strides());
  if (needs_graph({*this})) connect(std::make_shared<NarrowBackward>(*this, along, start), {*this}, out);
  return out;
}

Tensor Tensor::select(int dim, std::int64_t index) const {
  const int along = wrap_dim("select", dim, ndim());
  const std::int64_t size = shape()[along];
  if (index < -size || index >= size)
    throw IndexError(fmt::format("select: index {} is outside dimension {} of shape {}.", index, along, shape().str()));
  return narrow(along, index < 0 ? index + size : index, 1).squeeze(along);
}

Tensor Tensor::unsqueeze(int dim) const {
  const int at = wrap_dim("unsqueeze", dim, ndim() + 1);
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
  return reshaped(*this, wider, steps);
}

Tensor Tensor::squeeze(int dim) const {
  const int at = wrap_dim("squeeze", dim, ndim());
  if (shape()[at] != 1) return *this;
  Shape narrower;
  Strides steps;
  for (int i = 0; i < ndim(); ++i) {
    if (i == at) continue;
    narrower.push_back(shape()[i]);
    steps.push_back(strides()[i]);
  }
  return reshaped(*this, narrower, steps);
}

Tensor Tensor::expand(const Shape& shape) const {
  if (broadcast_shape("expand", this->shape(), shape) != shape)
    throw ConfigError(fmt::format("expand: shape {} does not expand to {}.", this->shape().str(), shape.str()));
  Tensor out = alias(*this, 0, shape, broadcast_strides(this->shape(), strides(), shape));
  if (needs_graph({*this})) connect(std::make_shared<ExpandBackward>(this->shape()), {*this}, out);
  return out;
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  return is_contiguous(format) ? *this : copied(*this, empty(shape(), dtype(), format));
}

Tensor Tensor::clone() const { return copied(*this, empty_like(*this)); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  const bool image = ndim() == 4 && !is_contiguous() && is_contiguous(MemoryFormat::kChannelsLast);
  return copied(*this, empty(shape(), dtype, image ? MemoryFormat::kChannelsLast : MemoryFormat::kContiguous));
}

}  // namespace infeed
