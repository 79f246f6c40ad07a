#pragma once
/// What unary(), binary() and ternary() compute for one element, as float or double.

#include <cmath>
#include <cstdint>

#include "device/kernels/anywhere.h"
#include "infeed/device/operations.h"

namespace infeed::device {

using kernels::BinaryOp;
using kernels::TernaryOp;
using kernels::UnaryOp;

template <class C>
INFEED_ANYWHERE inline C sigmoid_of(C x) {
  return C(1) / (C(1) + std::exp(-x));
}
/// The normal distribution's function.
template <class C>
INFEED_ANYWHERE inline C normal_of(C x) {
  return C(0.5) * (C(1) + std::erf(x * C(0.70710678118654752)));
}
/// 2 u with u = sqrt(2 / pi) (x + 0.044715 x^3): gelu's tanh form is x sigmoid(2 u).
template <class C>
INFEED_ANYWHERE inline C gelu_inner_of(C x) {
  return C(1.5957691216057308) * x * (C(1) + C(0.044715) * x * x);
}

template <class C>
INFEED_ANYWHERE inline C activation(UnaryOp op, C x, C a, C b) {
  switch (op) {
    case UnaryOp::kRelu: return x < 0 ? C(0) : x;
    case UnaryOp::kLeakyRelu: return x > 0 ? x : a * x;
    case UnaryOp::kElu: return x > 0 ? x : a * std::expm1(x);
    case UnaryOp::kGelu: return x * normal_of(x);
    case UnaryOp::kGeluTanh: return x * sigmoid_of(gelu_inner_of(x));
    case UnaryOp::kSilu: return x * sigmoid_of(x);
    case UnaryOp::kSoftplus: return x * a > b ? x : std::log1p(std::exp(x * a)) / a;
    case UnaryOp::kLogSigmoid: return (x < 0 ? x : C(0)) - std::log1p(std::exp(-std::fabs(x)));
    case UnaryOp::kTanh: return std::tanh(x);
    case UnaryOp::kSigmoid: return sigmoid_of(x);
    default: return C(NAN);
  }
}

template <class C>
INFEED_ANYWHERE inline C rounded(UnaryOp op, C x, C a, C b) {
  switch (op) {
    case UnaryOp::kFloor: return std::floor(x);
    case UnaryOp::kCeil: return std::ceil(x);
    case UnaryOp::kRound: return std::nearbyint(x);
    case UnaryOp::kTrunc: return std::trunc(x);
    case UnaryOp::kLogicalNot: return C(x == 0);
    case UnaryOp::kIsNan: return C(std::isnan(x));
    case UnaryOp::kIsInf: return C(std::isinf(x));
    case UnaryOp::kIsFinite: return C(std::isfinite(x));
    default: return activation(op, x, a, b);
  }
}

template <class C>
INFEED_ANYWHERE inline C value_of(UnaryOp op, C x, C a, C b) {
  switch (op) {
    case UnaryOp::kNeg: return -x;
    case UnaryOp::kAbs: return std::fabs(x);
    case UnaryOp::kSign: return C((x > 0) - (x < 0));
    case UnaryOp::kSquare: return x * x;
    case UnaryOp::kReciprocal: return C(1) / x;
    case UnaryOp::kSqrt: return std::sqrt(x);
    case UnaryOp::kRsqrt: return C(1) / std::sqrt(x);
    case UnaryOp::kExp: return std::exp(x);
    case UnaryOp::kExpm1: return std::expm1(x);
    case UnaryOp::kLog: return std::log(x);
    case UnaryOp::kLog2: return std::log2(x);
    case UnaryOp::kLog10: return std::log10(x);
    case UnaryOp::kLog1p: return std::log1p(x);
    case UnaryOp::kSin: return std::sin(x);
    case UnaryOp::kCos: return std::cos(x);
    case UnaryOp::kTan: return std::tan(x);
    case UnaryOp::kErf: return std::erf(x);
    case UnaryOp::kClamp: {
      const C low = x < a ? a : x;
      return low > b ? b : low;
    }
    case UnaryOp::kAffine: return a * x + b;
    case UnaryOp::kPow: return std::pow(x, a);
    default: return rounded(op, x, a, b);
  }
}

/// Derivatives; 0 where the gradient g is 0.
template <class C>
INFEED_ANYWHERE inline C derivative(BinaryOp op, C g, C y, C a) {
  if (op == BinaryOp::kReluGrad) return y > 0 ? g : C(0);
  if (op == BinaryOp::kLeakyReluGrad) return y > 0 ? g : a * g;
  if (g == 0) return C(0);
  switch (op) {
    case BinaryOp::kTimes: return g * y;
    case BinaryOp::kOver: return g / y;
    case BinaryOp::kTanhGrad: return g * (C(1) - y * y);
    case BinaryOp::kSigmoidGrad: return g * y * (C(1) - y);
    case BinaryOp::kGeluGrad: return g * (normal_of(y) + y * C(0.39894228040143268) * std::exp(C(-0.5) * y * y));
    case BinaryOp::kGeluTanhGrad: {
      const C s = sigmoid_of(gelu_inner_of(y));
      return g * s * (C(1) + y * (C(1) - s) * C(1.5957691216057308) * (C(1) + C(3 * 0.044715) * y * y));
    }
    case BinaryOp::kSiluGrad: {
      const C s = sigmoid_of(y);
      return g * s * (C(1) + y * (C(1) - s));
    }
    default: return C(NAN);
  }
}

template <class C>
INFEED_ANYWHERE inline C compared(BinaryOp op, C x, C y, C a) {
  switch (op) {
    case BinaryOp::kEq: return C(x == y);
    case BinaryOp::kNe: return C(x != y);
    case BinaryOp::kLt: return C(x < y);
    case BinaryOp::kLe: return C(x <= y);
    case BinaryOp::kGt: return C(x > y);
    case BinaryOp::kGe: return C(x >= y);
    case BinaryOp::kAnd: return C((x != 0) && (y != 0));
    case BinaryOp::kOr: return C((x != 0) || (y != 0));
    case BinaryOp::kXor: return C((x != 0) != (y != 0));
    default: return derivative(op, x, y, a);
  }
}

template <class C>
INFEED_ANYWHERE inline C value_of(BinaryOp op, C x, C y, C a) {
  switch (op) {
    case BinaryOp::kAdd: return x + a * y;
    case BinaryOp::kSub: return x - a * y;
    case BinaryOp::kMul: return x * y;
    case BinaryOp::kDiv: return x / y;
    case BinaryOp::kPow: return std::pow(x, y);
    case BinaryOp::kMax: return x > y || std::isnan(x) ? x : y;
    case BinaryOp::kMin: return x < y || std::isnan(x) ? x : y;
    case BinaryOp::kAtan2: return std::atan2(x, y);
    default: return compared(op, x, y, a);
  }
}

template <class C>
INFEED_ANYWHERE inline C value_of(TernaryOp op, C x, C y, C z, C a) {
  switch (op) {
    case TernaryOp::kWhere: return x != 0 ? y : z;
    case TernaryOp::kAddcmul: return x + a * y * z;
    case TernaryOp::kAddcdiv: return x + a * (y / z);
    case TernaryOp::kLerp: return z < C(0.5) ? x + z * (y - x) : y - (y - x) * (C(1) - z);
  }
  return C(NAN);
}

}  // namespace infeed::device
