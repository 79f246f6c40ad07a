// New tensors for results: dtype by promotion, shape by broadcasting, layout of the operands.

#include "train/autograd/result.h"

#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/node.h"
#include "train/tensor/check.h"

namespace infeed {

using kernels::BinaryOp;
using kernels::UnaryOp;

namespace {

// 0: number, 1: no dimensions, 2: with dimensions.
int weight_of(const Tensor& x) { return x.is_wrapped_number() ? 0 : x.ndim() == 0 ? 1 : 2; }

int category_of(DType dtype) { return dtype == DType::kBool ? 0 : is_floating_point(dtype) ? 2 : 1; }

// A float number beside integers takes the default dtype, not float64.
DType operand_dtype(const Tensor& x) {
  return x.is_wrapped_number() && x.dtype() == DType::kFloat64 ? default_dtype() : x.dtype();
}

}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  const DType of_a = operand_dtype(a);
  const DType of_b = operand_dtype(b);
  if (of_a == of_b) return of_a;
  const int weight_a = weight_of(a);
  const int weight_b = weight_of(b);
  if (weight_a > weight_b && category_of(of_a) >= category_of(of_b)) return of_a;
  if (weight_b > weight_a && category_of(of_b) >= category_of(of_a)) return of_b;
  return promote_types(of_a, of_b);
}

DeviceId common_device(const Tensor& a, const Tensor& b) {
  const DeviceId device_a = a.device();
  const DeviceId device_b = b.device();
  if (device_a == device_b) return device_a;
  if (a.ndim() == 0 && device_a.type == DeviceType::kCPU) return device_b;
  if (b.ndim() == 0 && device_b.type == DeviceType::kCPU) return device_a;
  throw RuntimeError(
      fmt::format("Expected all tensors to be on the same device, but found at least two devices, {} and {}!",
                  device_name(device_a), device_name(device_b)));
}

Tensor empty_result(const Tensor& a, const Tensor& b, DType dtype) {
  const DeviceId device = common_device(a, b);
  const Shape shape = broadcast_shape(a.shape(), b.shape());
  for (const Tensor* like : {&a, &b}) {
    if (like->shape() == shape && like->device() == device && is_dense(shape, like->strides()))
      return Tensor::empty_like(*like, dtype);
  }
  return Tensor::empty(shape, TensorOptions(dtype, device));
}

DType real_dtype(DType dtype) { return is_floating_point(dtype) ? dtype : default_dtype(); }

Tensor unary_result(UnaryOp op, const Tensor& x, DType dtype, double a, double b) {
  Tensor out = Tensor::empty_like(x, dtype);
  kernels::unary(op, out, x, dtype, a, b);
  return out;
}

Tensor binary_result(BinaryOp op, const Tensor& a, const Tensor& b, DType compute, std::optional<DType> stored,
                     double alpha) {
  Tensor out = empty_result(a, b, stored.value_or(compute));
  kernels::binary(op, out, a, b, compute, alpha);
  return out;
}

Tensor real_unary(UnaryOp op, const Tensor& x, double a, double b) {
  return unary_result(op, x, real_dtype(x.dtype()), a, b);
}

Tensor real_binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  return binary_result(op, a, b, real_dtype(result_type(a, b)));
}

Tensor binary_of(BinaryOp op, const Tensor& a, const Tensor& b) { return binary_result(op, a, b, result_type(a, b)); }

Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? x.to(DType::kFloat32) : x; }

Tensor times(const Tensor& g, const Tensor& v) {
  return needs_graph({g, v}) ? g * v : binary_of(BinaryOp::kTimes, g, v);
}

Tensor over(const Tensor& g, const Tensor& v) {
  return needs_graph({g, v}) ? g / v : real_binary(BinaryOp::kOver, g, v);
}

}  // namespace infeed
