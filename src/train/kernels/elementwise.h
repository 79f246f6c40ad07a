#pragma once
/// Elementwise arithmetic into a given output, without recording. One loop serves every operation, dtype and stride:
/// elements are computed as float (float16, bfloat16, float32), double or int64 (integers, bool), in blocks that are
/// read and written directly where the tensor is dense and of that type.
///
/// Inputs broadcast to the output and may have any dtype; `out` may be an input itself. Shapes are the caller's care.

#include "infeed/device/operations.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// `compute`: the dtype, after promotion, in which it is computed.
void unary(UnaryOp op, const Tensor& out, const Tensor& x, DType compute, double a = 0.0, double b = 0.0);
void binary(BinaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, DType compute, double a = 1.0);
void ternary(TernaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, const Tensor& z, DType compute,
             double a = 1.0);

/// Computed in the dtype of the output.
inline void unary(UnaryOp op, const Tensor& out, const Tensor& x) { unary(op, out, x, out.dtype()); }
inline void binary(BinaryOp op, const Tensor& out, const Tensor& x, const Tensor& y) {
  binary(op, out, x, y, out.dtype());
}

/// g where y > 0, else 0.
[[nodiscard]] inline Tensor relu_backward(const Tensor& g, const Tensor& y) {
  Tensor out = Tensor::empty_like(y);
  binary(BinaryOp::kReluGrad, out, g, y);
  return out;
}

}  // namespace infeed::kernels
