#pragma once
/// Elementwise arithmetic into a given output, without recording. One loop serves every operation, dtype and stride:
/// elements are computed as float (float16, bfloat16, float32), double or int64 (integers, bool), in blocks that are
/// read and written directly where the tensor is dense and of that type.
///
/// Inputs broadcast to the output and may have any dtype; `out` may be an input itself. Shapes are the caller's care.

#include <cstdint>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// x -> f(x; a, b)
enum class UnaryOp : std::uint8_t {
  kNeg,
  kAbs,
  kSign,
  kSquare,
  kReciprocal,
  kSqrt,
  kRsqrt,
  kExp,
  kExpm1,
  kLog,
  kLog2,
  kLog10,
  kLog1p,
  kSin,
  kCos,
  kTan,
  kTanh,
  kSigmoid,
  kErf,
  kFloor,
  kCeil,
  kRound,
  kTrunc,
  kLogicalNot,
  kBitwiseNot,
  kIsNan,
  kIsInf,
  kIsFinite,
  kRelu,
  kLeakyRelu,  ///< x > 0 ? x : a x
  kElu,        ///< x > 0 ? x : a (exp(x) - 1)
  kGelu,       ///< x Phi(x)
  kGeluTanh,   ///< x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  kSilu,       ///< x sigmoid(x)
  kSoftplus,   ///< log(1 + exp(a x)) / a, x itself where a x > b
  kLogSigmoid,
  kClamp,   ///< min(max(x, a), b)
  kAffine,  ///< a x + b
  kPow,     ///< x^a
};

/// (x, y) -> f(x, y; a)
enum class BinaryOp : std::uint8_t {
  kAdd,  ///< x + a y
  kSub,  ///< x - a y
  kMul,
  kDiv,
  kFloorDiv,
  kTruncDiv,
  kRemainder,  ///< sign of y, as Python's
  kFmod,       ///< sign of x, as C's
  kPow,
  kMax,
  kMin,
  kAtan2,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kAnd,
  kOr,
  kXor,
  kBitAnd,
  kBitOr,
  kBitXor,
  // Derivatives in one pass: x is the gradient that arrives, y what was saved. 0 where x is 0, whatever y.
  kTimes,
  kOver,
  kReluGrad,
  kLeakyReluGrad,
  kTanhGrad,
  kSigmoidGrad,
  kGeluGrad,
  kGeluTanhGrad,
  kSiluGrad,
};

/// (x, y, z) -> f(x, y, z; a)
enum class TernaryOp : std::uint8_t {
  kWhere,    ///< x ? y : z
  kAddcmul,  ///< x + a y z
  kAddcdiv,  ///< x + a y / z
  kLerp,     ///< x + z (y - x)
};

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
