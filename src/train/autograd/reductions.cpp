// Sums, means and extremes, and their backward.

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "train/kernels/reduce.h"
#include "train/tensor/impl.h"

namespace infeed {
namespace {

using Grads = std::span<Tensor>;

struct SumBackward final : Node {
  SumBackward(const Shape& x, const Shape& with_ones) : Node("sum"), shape(x), keepdim_shape(with_ones) {}
  void backward(Grads grads, Grads inputs) override { inputs[0] = grads[0].reshape(keepdim_shape).expand(shape); }
  Shape shape, keepdim_shape;
};

struct MaxBackward final : Node {
  MaxBackward(const Tensor& x, std::int64_t at) : Node("max"), shape(x.shape()), dtype(x.dtype()), position(at) {}
  void backward(Grads grads, Grads inputs) override {
    const Tensor flat = Tensor::zeros({shape.numel()}, dtype);
    flat.select(0, position).copy_(grads[0]);
    inputs[0] = flat.view(shape);
  }
  Shape shape;
  DType dtype;
  std::int64_t position;
};

Dims wrapped(std::string_view op, const Tensor& x, const Dims& dims) {
  Dims result;
  for (const std::int64_t given : dims) {
    const int dim = wrap_dim(op, static_cast<int>(given), x.ndim());
    for (const std::int64_t other : result) {
      if (other == dim) throw ConfigError(fmt::format("{}: dimension {} is given twice.", op, dim));
    }
    result.push_back(dim);
  }
  return result;
}

Shape without(const Shape& shape, const Dims& dims) {
  Shape result;
  for (int dim = 0; dim < shape.ndim(); ++dim) {
    bool dropped = false;
    for (const std::int64_t other : dims) dropped = dropped || other == dim;
    if (!dropped) result.push_back(shape[dim]);
  }
  return result;
}

Dims all_dims(const Tensor& x) {
  Dims dims;
  for (int dim = 0; dim < x.ndim(); ++dim) dims.push_back(dim);
  return dims;
}

double inverse_count(std::string_view op, const Tensor& x, const Tensor& reduced) {
  if (!is_floating_point(x.dtype()))
    throw ConfigError(
        fmt::format("{}: dtype {} has no mean, convert with to(DType::kFloat32).", op, to_string(x.dtype())));
  return static_cast<double>(reduced.numel()) / static_cast<double>(x.numel());
}

}  // namespace

Tensor sum(const Tensor& x) { return sum(x, all_dims(x)); }

Tensor sum(const Tensor& x, const Dims& given, bool keepdim) {
  const Dims dims = wrapped("sum", x, given);
  const Tensor kept = kernels::sum_keepdim(x, dims);
  Tensor out = keepdim ? kept : kept.view(without(x.shape(), dims));
  if (needs_graph({x})) connect(std::make_shared<SumBackward>(x.shape(), kept.shape()), {x}, out);
  return out;
}

Tensor mean(const Tensor& x) {
  const Tensor total = sum(x);
  return total * inverse_count("mean", x, total);
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const Tensor total = sum(x, dims, keepdim);
  return total * inverse_count("mean", x, total);
}

Tensor max(const Tensor& x) {
  if (x.numel() == 0) throw ConfigError(fmt::format("max: shape {} has no elements.", x.shape().str()));
  const std::int64_t position = kernels::argmax_all(x);
  Tensor out = x.detach().reshape({x.numel()}).select(0, position).clone();
  if (needs_graph({x})) connect(std::make_shared<MaxBackward>(x, position), {x}, out);
  return out;
}

Tensor argmax(const Tensor& x, int dim) { return kernels::argmax(x, wrap_dim("argmax", dim, x.ndim())); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const int added = x.ndim() - shape.ndim();
  Dims dims;
  for (int dim = 0; dim < x.ndim(); ++dim) {
    if (dim < added || (shape[dim - added] == 1 && x.shape()[dim] != 1)) dims.push_back(dim);
  }
  return sum(x, dims, true).view(shape);
}

}  // namespace infeed
