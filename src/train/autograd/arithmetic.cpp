// Operations of two and three tensors: the kernel, and the formula of backward.

#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/reduction.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/check.h"

namespace infeed {

using kernels::BinaryOp;
using kernels::TernaryOp;
using kernels::UnaryOp;

namespace {

void refuse_bool(std::string_view sign, const Tensor& a, const Tensor& b) {
  require(
      a.dtype() != DType::kBool || b.dtype() != DType::kBool,
      "Subtraction, the `{}` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
      "instead.",
      sign);
}

void check_alpha(const Scalar& alpha, DType dtype) {
  require(is_floating_point(dtype) || !alpha.is_float(),
          "For integral input tensors, argument alpha must not be a "
          "floating point number.");
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  const DType dtype = result_type(a, b);
  check_alpha(alpha, dtype);
  const double factor = alpha.to_double();
  return record("AddBackward0", {a, b}, binary_result(BinaryOp::kAdd, a, b, dtype, {}, factor), {},
                [factor](const Pass& p) {
                  if (p.needs(0)) p.give(0, p.g());
                  if (p.needs(1)) p.give(1, factor == 1.0 ? p.g() : p.g() * factor);
                });
}

Tensor sub(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  refuse_bool("-", a, b);
  const DType dtype = result_type(a, b);
  check_alpha(alpha, dtype);
  const double factor = alpha.to_double();
  const std::string_view name = a.is_wrapped_number() ? "RsubBackward1" : "SubBackward0";
  return record(name, {a, b}, binary_result(BinaryOp::kSub, a, b, dtype, {}, factor), {}, [factor](const Pass& p) {
    if (p.needs(0)) p.give(0, p.g());
    if (p.needs(1)) p.give(1, p.g() * -factor);
  });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  return record("MulBackward0", {a, b}, binary_of(BinaryOp::kMul, a, b), {saved_for(b, a), saved_for(a, b)},
                [](const Pass& p) {
                  if (p.needs(0)) p.give(0, times(p.g(), p.saved(1)));
                  if (p.needs(1)) p.give(1, times(p.g(), p.saved(0)));
                });
}

Tensor div(const Tensor& a, const Tensor& b) {
  return record("DivBackward0", {a, b}, real_binary(BinaryOp::kDiv, a, b), {saved_for(b, a), b}, [](const Pass& p) {
    const Tensor by = p.saved(1);
    const Tensor scaled = over(p.g(), by);
    if (p.needs(0)) p.give(0, scaled);
    if (p.needs(1)) p.give(1, -times(scaled, p.saved(0) / by));
  });
}

Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode) {
  require(rounding_mode == "floor" || rounding_mode == "trunc",
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'", rounding_mode);
  const BinaryOp op = rounding_mode == "floor" ? BinaryOp::kFloorDiv : BinaryOp::kTruncDiv;
  return record("DivBackward2", {a, b}, binary_of(op, a, b), {}, [](const Pass& p) {
    if (p.needs(0)) p.give(0, Tensor::zeros(p.g().shape(), p.g().options()));
    if (p.needs(1)) p.give(1, Tensor::zeros(p.g().shape(), p.g().options()));
  });
}

Tensor floor_divide(const Tensor& a, const Tensor& b) { return binary_of(BinaryOp::kFloorDiv, a, b); }

namespace {

Tensor remainder_like(BinaryOp op, std::string_view name, std::string_view rounding, const Tensor& a, const Tensor& b) {
  return record(name, {a, b}, binary_of(op, a, b), {saved_for(b, a), saved_for(b, b)}, [rounding](const Pass& p) {
    if (p.needs(0)) p.give(0, p.g());
    if (p.needs(1)) p.give(1, -p.g() * div(p.saved(0), p.saved(1), rounding));
  });
}

}  // namespace

Tensor remainder(const Tensor& a, const Tensor& b) {
  return remainder_like(BinaryOp::kRemainder, b.is_wrapped_number() ? "RemainderBackward0" : "RemainderBackward1",
                        "floor", a, b);
}
Tensor fmod(const Tensor& a, const Tensor& b) {
  return remainder_like(BinaryOp::kFmod, b.is_wrapped_number() ? "FmodBackward0" : "FmodBackward1", "trunc", a, b);
}

namespace {

// x^2, x^0.5 and their like have faster and more exact forms.
Tensor power_of(const Tensor& x, double exponent, DType dtype) {
  if (exponent == 2.0) return unary_result(UnaryOp::kSquare, x, dtype);
  if (exponent == 1.0) return unary_result(UnaryOp::kAffine, x, dtype, 1.0, 0.0);
  if (exponent == 0.5 && is_floating_point(dtype)) return unary_result(UnaryOp::kSqrt, x, dtype);
  if (exponent == -1.0 && is_floating_point(dtype)) return unary_result(UnaryOp::kReciprocal, x, dtype);
  if (exponent == 3.0) return binary_result(BinaryOp::kMul, x, unary_result(UnaryOp::kSquare, x, dtype), dtype);
  if (is_floating_point(dtype)) return unary_result(UnaryOp::kPow, x, dtype, exponent);
  require(exponent >= 0.0, "Integers to negative integer powers are not allowed.");
  return binary_result(BinaryOp::kPow, x, Tensor(static_cast<std::int64_t>(exponent)), dtype);
}

Tensor pow_tensors(std::string_view name, const Tensor& a, const Tensor& b) {
  Tensor y = binary_of(BinaryOp::kPow, a, b);
  return record(name, {a, b}, y, {a, b, saved_for(b, y)}, [](const Pass& p) {
    const Tensor base = p.saved(0);
    const Tensor exponent = p.saved(1);
    if (p.needs(0)) p.give(0, where(eq(exponent, 0.0), 0.0, times(p.g(), exponent * pow(base, exponent - 1.0))));
    if (p.needs(1)) {
      const Tensor zero = logical_and(eq(base, 0.0), ge(exponent, 0.0));
      p.give(1, times(p.g(), where(zero, 0.0, p.saved(2) * log(where(zero, 1.0, base)))));
    }
  });
}

Tensor pow_number(const Tensor& a, const Tensor& b) {
  const double exponent = b.item();
  return record("PowBackward0", {a}, power_of(a, exponent, result_type(a, b)), {a}, [exponent](const Pass& p) {
    if (exponent == 0.0) return Tensor::zeros(p.g().shape(), p.g().options());
    const Tensor x = p.saved(0);
    return times(p.g(), exponent == 2.0 ? x * 2.0 : pow(x, exponent - 1.0) * exponent);
  });
}

}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  if (b.is_wrapped_number()) return pow_number(a, b);
  if (a.is_wrapped_number()) return pow_tensors("PowBackward2", a.to(result_type(a, b), true), b);
  return pow_tensors("PowBackward1", a, b);
}

namespace {

Tensor extreme(BinaryOp op, BinaryOp loses, std::string_view name, const Tensor& a, const Tensor& b) {
  return record(name, {a, b}, binary_of(op, a, b), {a, b}, [loses](const Pass& p) {
    const Tensor first = p.saved(0);
    const Tensor second = p.saved(1);
    const Tensor half = where(eq(first, second), p.g() / 2.0, p.g());
    const auto lost = [&](const Tensor& x, const Tensor& y) {
      return binary_result(loses, x, y, result_type(x, y), DType::kBool);
    };
    if (p.needs(0)) p.give(0, where(lost(first, second), 0.0, half));
    if (p.needs(1)) p.give(1, where(lost(second, first), 0.0, half));
  });
}

}  // namespace

Tensor maximum(const Tensor& a, const Tensor& b) {
  return extreme(BinaryOp::kMax, BinaryOp::kLt, "MaximumBackward0", a, b);
}
Tensor minimum(const Tensor& a, const Tensor& b) {
  return extreme(BinaryOp::kMin, BinaryOp::kGt, "MinimumBackward0", a, b);
}

Tensor atan2(const Tensor& a, const Tensor& b) {
  return record("Atan2Backward0", {a, b}, real_binary(BinaryOp::kAtan2, a, b), {a, b}, [](const Pass& p) {
    const Tensor y = widened(p.saved(0));
    const Tensor x = widened(p.saved(1));
    const Tensor scaled = p.g() / (x * x + y * y);
    if (p.needs(0)) p.give(0, scaled * x);
    if (p.needs(1)) p.give(1, -(scaled * y));
  });
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require(condition.dtype() == DType::kBool || condition.dtype() == DType::kUInt8,
          "where expected condition to be a boolean tensor, but got a tensor with dtype {}", condition.dtype());
  const DType dtype = result_type(a, b);
  const Tensor like = empty_result(a, b, dtype);
  Tensor out = like.shape() == condition.shape() || condition.ndim() == 0 ? like : empty_result(like, condition, dtype);
  kernels::ternary(TernaryOp::kWhere, out, condition, a, b, dtype);
  return record("WhereBackward0", {condition, a, b}, out, {condition}, [](const Pass& p) {
    if (p.needs(1)) p.give(1, where(p.saved(0), p.g(), 0.0));
    if (p.needs(2)) p.give(2, where(p.saved(0), 0.0, p.g()));
  });
}

namespace {

Tensor ternary_of(TernaryOp op, const Tensor& x, const Tensor& a, const Tensor& b, double value) {
  const DType dtype = promote_types(result_type(x, a), result_type(x, b));
  const Tensor inner = a.shape() == b.shape() ? a : empty_result(a, b, dtype);
  Tensor out = empty_result(x, inner, dtype);
  kernels::ternary(op, out, x, a, b, dtype, value);
  return out;
}

}  // namespace

Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  const double v = value.to_double();
  return record("AddcmulBackward0", {x, a, b}, ternary_of(TernaryOp::kAddcmul, x, a, b, v), {a, b}, [v](const Pass& p) {
    if (p.needs(0)) p.give(0, p.g());
    if (p.needs(1)) p.give(1, p.g() * p.saved(1) * v);
    if (p.needs(2)) p.give(2, p.g() * p.saved(0) * v);
  });
}

Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value) {
  const double v = value.to_double();
  return record("AddcdivBackward0", {x, a, b}, ternary_of(TernaryOp::kAddcdiv, x, a, b, v), {a, b}, [v](const Pass& p) {
    const Tensor scaled = p.g() / p.saved(1) * v;
    if (p.needs(0)) p.give(0, p.g());
    if (p.needs(1)) p.give(1, scaled);
    if (p.needs(2)) p.give(2, -(scaled * p.saved(0) / p.saved(1)));
  });
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  return record(weight.is_wrapped_number() ? "LerpBackward0" : "LerpBackward1", {a, b, weight},
                ternary_of(TernaryOp::kLerp, a, b, weight, 1.0), {a, b, weight}, [](const Pass& p) {
                  const Tensor w = p.saved(2);
                  const Tensor g = widened(p.g());
                  if (p.needs(0)) p.give(0, g - g * w);  // 1 - w of a number would be float32
                  if (p.needs(1)) p.give(1, g * w);
                  if (p.needs(2)) p.give(2, g * (p.saved(1) - p.saved(0)));
                });
}

Tensor affine(const Tensor& x, double scale, double shift) {
  return record("MulBackward0", {x}, real_unary(UnaryOp::kAffine, x, scale, shift), {},
                [scale](const Pass& p) { return scale == 1.0 ? p.g() : p.g() * scale; });
}

}  // namespace infeed
