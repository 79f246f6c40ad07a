#pragma once
/// What elementwise kernels compute, for one element. The numbers are part of the plugins' ABI (kernel_abi.h): append only.

#include <cstdint>

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

}  // namespace infeed::kernels
