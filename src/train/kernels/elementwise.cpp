#include "train/kernels/elementwise.h"

#include <cmath>
#include <limits>

#include "train/kernels/map.h"
#include "train/kernels/on_device.h"
#include "train/kernels/vector_math.h"
#include "train/tensor/check.h"

namespace infeed::kernels {
namespace {

template <class C>
Block<C, 1> arithmetic_block(UnaryOp op) {
  switch (op) {
    case UnaryOp::kNeg: return block_of<C, 1>([](C x) { return -x; });
    case UnaryOp::kAbs: return block_of<C, 1>([](C x) { return x < 0 ? -x : x == 0 ? C{0} : x; });
    case UnaryOp::kSign: return block_of<C, 1>([](C x) { return (x > 0) - (x < 0); });
    case UnaryOp::kSquare: return block_of<C, 1>([](C x) { return x * x; });
    case UnaryOp::kLogicalNot: return block_of<C, 1>([](C x) { return x == 0; });
    case UnaryOp::kRelu: return block_of<C, 1>([](C x) { return x < 0 ? C{0} : x; });  // NaN stays
    case UnaryOp::kClamp:
      return block_of<C, 1>([](C x, const Params<C>& p) {
        const C low = x < p.a ? p.a : x;
        return low > p.b ? p.b : low;
      });
    case UnaryOp::kAffine: return block_of<C, 1>([](C x, const Params<C>& p) { return p.a * x + p.b; });
    default: return nullptr;
  }
}

template <class C>
Block<C, 1> real_block(UnaryOp op) {
  switch (op) {
    case UnaryOp::kReciprocal: return block_of<C, 1>([](C x) { return 1 / x; });
    case UnaryOp::kSqrt: return block_of<C, 1>([](C x) { return std::sqrt(x); });
    case UnaryOp::kRsqrt: return block_of<C, 1>([](C x) { return 1 / std::sqrt(x); });
    case UnaryOp::kExp: return block_of<C, 1>([](C x) { return fast::exp(x); });
    case UnaryOp::kExpm1: return block_of<C, 1>([](C x) { return std::expm1(x); });
    case UnaryOp::kLog: return block_of<C, 1>([](C x) { return fast::log(x); });
    case UnaryOp::kLog2: return block_of<C, 1>([](C x) { return std::log2(x); });
    case UnaryOp::kLog10: return block_of<C, 1>([](C x) { return std::log10(x); });
    case UnaryOp::kLog1p: return block_of<C, 1>([](C x) { return std::log1p(x); });
    case UnaryOp::kSin: return block_of<C, 1>([](C x) { return fast::sin(x); });
    case UnaryOp::kCos: return block_of<C, 1>([](C x) { return fast::cos(x); });
    case UnaryOp::kTan: return block_of<C, 1>([](C x) { return std::tan(x); });
    case UnaryOp::kTanh: return block_of<C, 1>([](C x) { return fast::tanh(x); });
    case UnaryOp::kSigmoid: return block_of<C, 1>([](C x) { return fast::sigmoid(x); });
    case UnaryOp::kErf: return block_of<C, 1>([](C x) { return fast::erf(x); });
    case UnaryOp::kFloor: return block_of<C, 1>([](C x) { return std::floor(x); });
    case UnaryOp::kCeil: return block_of<C, 1>([](C x) { return std::ceil(x); });
    case UnaryOp::kRound: return block_of<C, 1>([](C x) { return std::nearbyint(x); });  // half to even
    case UnaryOp::kTrunc: return block_of<C, 1>([](C x) { return std::trunc(x); });
    case UnaryOp::kIsNan: return block_of<C, 1>([](C x) { return std::isnan(x); });
    case UnaryOp::kIsInf: return block_of<C, 1>([](C x) { return std::fabs(x) == std::numeric_limits<C>::infinity(); });
    case UnaryOp::kIsFinite:
      return block_of<C, 1>([](C x) { return std::fabs(x) < std::numeric_limits<C>::infinity(); });
    case UnaryOp::kPow: return block_of<C, 1>([](C x, const Params<C>& p) { return std::pow(x, p.a); });
    default: return nullptr;
  }
}

// 2 u with u = sqrt(2 / pi) (x + 0.044715 x^3): gelu's tanh form is x (1 + tanh u) / 2 = x sigmoid(2 u).
template <class C>
INFEED_INLINE C gelu_inner(C x) noexcept {
  return C(1.5957691216057308) * x * (1 + C(0.044715) * x * x);
}

template <class C>
Block<C, 1> activation_block(UnaryOp op) {
  switch (op) {
    case UnaryOp::kLeakyRelu: return block_of<C, 1>([](C x, const Params<C>& p) { return x > 0 ? x : p.a * x; });
    case UnaryOp::kElu: return block_of<C, 1>([](C x, const Params<C>& p) { return x > 0 ? x : p.a * std::expm1(x); });
    case UnaryOp::kGelu: return block_of<C, 1>([](C x) { return x * fast::normal(x).cdf; });
    case UnaryOp::kGeluTanh: return block_of<C, 1>([](C x) { return x * fast::sigmoid(gelu_inner(x)); });
    case UnaryOp::kSilu: return block_of<C, 1>([](C x) { return x * fast::sigmoid(x); });
    case UnaryOp::kSoftplus:
      return block_of<C, 1>(
          [](C x, const Params<C>& p) { return x * p.a > p.b ? x : std::log1p(std::exp(x * p.a)) / p.a; });
    case UnaryOp::kLogSigmoid:
      return block_of<C, 1>([](C x) { return (x < 0 ? x : C{0}) - std::log1p(std::exp(-std::fabs(x))); });
    default: return nullptr;
  }
}

template <class C>
Block<C, 1> unary_block(UnaryOp op) {
  if (const auto block = arithmetic_block<C>(op)) return block;
  if constexpr (std::is_floating_point_v<C>) {
    if (const auto block = real_block<C>(op)) return block;
    return activation_block<C>(op);
  } else {
    switch (op) {  // what PyTorch defines on integers
      case UnaryOp::kBitwiseNot: return block_of<C, 1>([](C x) { return ~x; });
      case UnaryOp::kFloor:
      case UnaryOp::kCeil:
      case UnaryOp::kRound:
      case UnaryOp::kTrunc: return block_of<C, 1>([](C x) { return x; });
      case UnaryOp::kIsNan:
      case UnaryOp::kIsInf: return block_of<C, 1>([](C) { return 0; });
      case UnaryOp::kIsFinite: return block_of<C, 1>([](C) { return 1; });
      default: return nullptr;
    }
  }
}

// Integers: division by zero is refused before (checks see it), powers wrap.
std::int64_t power(std::int64_t base, std::int64_t exponent) noexcept {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent % 2 == 0 ? 1 : -1) : 0;
  std::uint64_t result = 1;
  for (auto square = static_cast<std::uint64_t>(base); exponent > 0; exponent >>= 1, square *= square) {
    if ((exponent & 1) != 0) result *= square;
  }
  return static_cast<std::int64_t>(result);
}

template <class C>
C remainder_of(C x, C y) noexcept {
  if constexpr (std::is_floating_point_v<C>) {
    const C rest = std::fmod(x, y);
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  } else {
    if (y == -1) return 0;
    const C rest = x % y;
    return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
  }
}

// Python's floor division: for floats corrected so that quotient and remainder agree.
template <class C>
C floor_quotient(C x, C y) noexcept {
  if constexpr (std::is_floating_point_v<C>) {
    if (y == 0) return x / y;
    C quotient = (x - std::fmod(x, y)) / y;
    if (std::fmod(x, y) != 0 && (y < 0) != (std::fmod(x, y) < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(C{0}, x / y);
    const C floored = std::floor(quotient);
    return quotient - floored > C(0.5) ? floored + 1 : floored;
  } else {
    if (y == -1) return -x;
    const C quotient = x / y;
    return quotient * y != x && (x < 0) != (y < 0) ? quotient - 1 : quotient;
  }
}

template <class C>
Block<C, 2> arithmetic_block(BinaryOp op, bool plain) {
  switch (op) {
    case BinaryOp::kAdd:
      if (plain) return block_of<C, 2>([](C x, C y) { return x + y; });
      return block_of<C, 2>([](C x, C y, const Params<C>& p) { return x + p.a * y; });
    case BinaryOp::kSub:
      if (plain) return block_of<C, 2>([](C x, C y) { return x - y; });
      return block_of<C, 2>([](C x, C y, const Params<C>& p) { return x - p.a * y; });
    case BinaryOp::kMul: return block_of<C, 2>([](C x, C y) { return x * y; });
    case BinaryOp::kFloorDiv: return block_of<C, 2>([](C x, C y) { return floor_quotient(x, y); });
    case BinaryOp::kRemainder: return block_of<C, 2>([](C x, C y) { return remainder_of(x, y); });
    case BinaryOp::kMax: return block_of<C, 2>([](C x, C y) { return std::isnan(x) || x > y ? x : y; });  // NaN wins
    case BinaryOp::kMin: return block_of<C, 2>([](C x, C y) { return std::isnan(x) || x < y ? x : y; });
    case BinaryOp::kReluGrad: return block_of<C, 2>([](C g, C y) { return y > 0 ? g : C{0}; });
    case BinaryOp::kLeakyReluGrad:
      return block_of<C, 2>([](C g, C x, const Params<C>& p) { return x > 0 ? g : p.a * g; });
    default: return nullptr;
  }
}

template <class C>
Block<C, 2> comparison_block(BinaryOp op) {
  switch (op) {
    case BinaryOp::kEq: return block_of<C, 2>([](C x, C y) { return x == y; });
    case BinaryOp::kNe: return block_of<C, 2>([](C x, C y) { return x != y; });
    case BinaryOp::kLt: return block_of<C, 2>([](C x, C y) { return x < y; });
    case BinaryOp::kLe: return block_of<C, 2>([](C x, C y) { return x <= y; });
    case BinaryOp::kGt: return block_of<C, 2>([](C x, C y) { return x > y; });
    case BinaryOp::kGe: return block_of<C, 2>([](C x, C y) { return x >= y; });
    case BinaryOp::kAnd: return block_of<C, 2>([](C x, C y) { return (x != 0) & (y != 0); });
    case BinaryOp::kOr: return block_of<C, 2>([](C x, C y) { return (x != 0) | (y != 0); });
    case BinaryOp::kXor: return block_of<C, 2>([](C x, C y) { return (x != 0) ^ (y != 0); });
    default: return nullptr;
  }
}

template <class C>
Block<C, 2> real_block(BinaryOp op) {
  switch (op) {
    case BinaryOp::kDiv: return block_of<C, 2>([](C x, C y) { return x / y; });
    case BinaryOp::kTruncDiv: return block_of<C, 2>([](C x, C y) { return std::trunc(x / y); });
    case BinaryOp::kFmod: return block_of<C, 2>([](C x, C y) { return std::fmod(x, y); });
    case BinaryOp::kPow: return block_of<C, 2>([](C x, C y) { return std::pow(x, y); });
    case BinaryOp::kAtan2: return block_of<C, 2>([](C x, C y) { return std::atan2(x, y); });
    case BinaryOp::kTimes: return block_of<C, 2>([](C g, C y) { return g == 0 ? C{0} : g * y; });
    case BinaryOp::kOver: return block_of<C, 2>([](C g, C y) { return g == 0 ? C{0} : g / y; });
    case BinaryOp::kTanhGrad: return block_of<C, 2>([](C g, C y) { return g == 0 ? C{0} : g * (1 - y * y); });
    case BinaryOp::kSigmoidGrad: return block_of<C, 2>([](C g, C y) { return g == 0 ? C{0} : g * y * (1 - y); });
    case BinaryOp::kGeluGrad:  // Phi(x) + x phi(x)
      return block_of<C, 2>([](C g, C x) {
        const auto n = fast::normal(x);
        return g == 0 ? C{0} : g * (n.cdf + x * n.density);
      });
    case BinaryOp::kGeluTanhGrad:
      return block_of<C, 2>([](C g, C x) {
        const C s = fast::sigmoid(gelu_inner(x));
        const C slope = C(1.5957691216057308) * (1 + 3 * C(0.044715) * x * x);
        return g == 0 ? C{0} : g * s * (1 + x * (1 - s) * slope);
      });
    case BinaryOp::kSiluGrad:
      return block_of<C, 2>([](C g, C x) {
        const C s = fast::sigmoid(x);
        return g == 0 ? C{0} : g * s * (1 + x * (1 - s));
      });
    default: return nullptr;
  }
}

template <class C>
Block<C, 2> integer_block(BinaryOp op) {
  switch (op) {
    case BinaryOp::kTruncDiv: return block_of<C, 2>([](C x, C y) { return y == -1 ? -x : x / y; });
    case BinaryOp::kFmod: return block_of<C, 2>([](C x, C y) { return y == -1 ? 0 : x % y; });
    case BinaryOp::kPow: return block_of<C, 2>([](C x, C y) { return power(x, y); });
    case BinaryOp::kBitAnd: return block_of<C, 2>([](C x, C y) { return x & y; });
    case BinaryOp::kBitOr: return block_of<C, 2>([](C x, C y) { return x | y; });
    case BinaryOp::kBitXor: return block_of<C, 2>([](C x, C y) { return x ^ y; });
    default: return nullptr;
  }
}

template <class C>
Block<C, 2> binary_block(BinaryOp op, bool plain) {
  if (const auto block = arithmetic_block<C>(op, plain)) return block;
  if (const auto block = comparison_block<C>(op)) return block;
  if constexpr (std::is_floating_point_v<C>)
    return real_block<C>(op);
  else
    return integer_block<C>(op);
}

template <class C>
Block<C, 3> ternary_block(TernaryOp op) {
  switch (op) {
    case TernaryOp::kWhere: return block_of<C, 3>([](C x, C y, C z) { return x != 0 ? y : z; });
    case TernaryOp::kAddcmul: return block_of<C, 3>([](C x, C y, C z, const Params<C>& p) { return x + p.a * y * z; });
    case TernaryOp::kLerp:
      return block_of<C, 3>([](C x, C y, C w) { return w < C(0.5) ? x + w * (y - x) : y - (y - x) * (1 - w); });
    case TernaryOp::kAddcdiv: break;
  }
  if constexpr (std::is_floating_point_v<C>)
    return block_of<C, 3>([](C x, C y, C z, const Params<C>& p) { return x + p.a * (y / z); });
  else
    return nullptr;
}

template <class C>
C as(double value) noexcept {
  if constexpr (!std::is_floating_point_v<C>) {
    constexpr auto kLargest = std::numeric_limits<C>::max();
    if (value >= 0x1p63) return kLargest;
    if (value <= -0x1p63) return std::numeric_limits<C>::min();
  }
  return static_cast<C>(value);
}

template <class C, std::size_t N>
void run(const Tensor& out, const std::array<const Tensor*, N>& in, Block<C, N> block, double a, double b) {
  require(block != nullptr, "this operation is not implemented for '{}'", in[0]->dtype());
  map<C, N>(out, in, block, {as<C>(a), as<C>(b)});
}

void refuse_zero_divisor(BinaryOp op, const Tensor& y, DType compute) {
  const bool divides =
      op == BinaryOp::kFloorDiv || op == BinaryOp::kTruncDiv || op == BinaryOp::kRemainder || op == BinaryOp::kFmod;
  if (!divides || is_floating_point(compute) || y.is_meta()) return;
  bool zero = false;
  const Load<std::int64_t> load = loader<std::int64_t>(y.dtype());
  Loop<1>(y.shape(), {&y}, {y.strides()})
      .run(
          [&](const Run<1>& run) {
            for (std::int64_t i = 0; i < run.count; ++i) {
              std::int64_t value = 0;
              load(&value, run.data[0] + i * run.stride[0], 0, 1);
              zero |= value == 0;
            }
          },
          false);
  require(!zero, "ZeroDivisionError");
}

}  // namespace

void unary(UnaryOp op, const Tensor& out, const Tensor& x, DType compute, double a, double b) {
  if (is_on_device(out)) return on_device::unary(op, out, x, compute, a, b);
  with_compute(compute, [&]<class C>(C) { run<C, 1>(out, {&x}, unary_block<C>(op), a, b); });
}

void binary(BinaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, DType compute, double a) {
  if (is_on_device(out)) return on_device::binary(op, out, x, y, compute, a);
  refuse_zero_divisor(op, y, compute);
  with_compute(compute, [&]<class C>(C) { run<C, 2>(out, {&x, &y}, binary_block<C>(op, a == 1.0), a, 0.0); });
}

void ternary(TernaryOp op, const Tensor& out, const Tensor& x, const Tensor& y, const Tensor& z, DType compute,
             double a) {
  if (is_on_device(out)) return on_device::ternary(op, out, x, y, z, compute, a);
  with_compute(compute, [&]<class C>(C) { run<C, 3>(out, {&x, &y, &z}, ternary_block<C>(op), a, 0.0); });
}

}  // namespace infeed::kernels
