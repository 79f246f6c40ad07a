// Comparisons and logic: bool, without gradients.

#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/reduction.h"
#include "train/autograd/result.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/check.h"

namespace infeed {

using kernels::BinaryOp;
using kernels::UnaryOp;

namespace {

Tensor compared(BinaryOp op, const Tensor& a, const Tensor& b) {
  return binary_result(op, a, b, result_type(a, b), DType::kBool);
}

Tensor tested(UnaryOp op, const Tensor& x) {
  Tensor out = Tensor::empty_like(x, DType::kBool);
  kernels::unary(op, out, x, x.dtype());
  return out;
}

Tensor bitwise(BinaryOp op, const Tensor& a, const Tensor& b) {
  const DType dtype = result_type(a, b);
  require(is_integral(dtype), "bitwise operators are not implemented for '{}'", dtype);
  return binary_result(op, a, b, dtype);
}

}  // namespace

Tensor eq(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kEq, a, b); }
Tensor ne(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kNe, a, b); }
Tensor lt(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kLt, a, b); }
Tensor le(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kLe, a, b); }
Tensor gt(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kGt, a, b); }
Tensor ge(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kGe, a, b); }
Tensor logical_and(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kAnd, a, b); }
Tensor logical_or(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kOr, a, b); }
Tensor logical_xor(const Tensor& a, const Tensor& b) { return compared(BinaryOp::kXor, a, b); }
Tensor logical_not(const Tensor& x) { return tested(UnaryOp::kLogicalNot, x); }
Tensor isnan(const Tensor& x) { return tested(UnaryOp::kIsNan, x); }
Tensor isinf(const Tensor& x) { return tested(UnaryOp::kIsInf, x); }
Tensor isfinite(const Tensor& x) { return tested(UnaryOp::kIsFinite, x); }
Tensor bitwise_and(const Tensor& a, const Tensor& b) { return bitwise(BinaryOp::kBitAnd, a, b); }
Tensor bitwise_or(const Tensor& a, const Tensor& b) { return bitwise(BinaryOp::kBitOr, a, b); }
Tensor bitwise_xor(const Tensor& a, const Tensor& b) { return bitwise(BinaryOp::kBitXor, a, b); }

Tensor bitwise_not(const Tensor& x) {
  require(is_integral(x.dtype()), "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
  return x.dtype() == DType::kBool ? logical_not(x) : unary_result(UnaryOp::kBitwiseNot, x, x.dtype());
}

bool equal(const Tensor& a, const Tensor& b) {
  const NoGradGuard no_grad;
  return a.shape() == b.shape() && (a.numel() == 0 || all(eq(a, b)).item<bool>());
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  require(a.dtype() == b.dtype(), "{} did not match {}", a.dtype(), b.dtype());
  const NoGradGuard no_grad;
  const Tensor near = logical_and(le(abs(a - b), abs(b) * rtol + atol), isfinite(b));
  const Tensor close = logical_or(near, eq(a, b));
  return equal_nan ? logical_or(close, logical_and(isnan(a), isnan(b))) : close;
}

bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan)).item<bool>();
}

}  // namespace infeed
