// Elementwise operations: dtype of the result, the kernel, the formula of backward.

#include "infeed/train/autograd/elementwise.h"

#include <array>
#include <cmath>
#include <numbers>

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

// ---- Results: dtype, shape, layout ----

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
  if (a.shape() == b.shape() && is_dense(a.shape(), a.strides())) {
    if (device == a.device()) return Tensor::empty_like(a, dtype);
  }
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

namespace {

Tensor real_unary(UnaryOp op, const Tensor& x, double a = 0.0, double b = 0.0) {
  return unary_result(op, x, real_dtype(x.dtype()), a, b);
}

Tensor real_binary(BinaryOp op, const Tensor& a, const Tensor& b) {
  return binary_result(op, a, b, real_dtype(result_type(a, b)));
}

Tensor binary_of(BinaryOp op, const Tensor& a, const Tensor& b) { return binary_result(op, a, b, result_type(a, b)); }

// One pass where nothing is recorded, tensor operations under create_graph.
template <class Formula>
Tensor fused(BinaryOp op, const Tensor& g, const Tensor& saved, Formula formula, double a = 1.0) {
  if (needs_graph({g, saved})) return formula();
  Tensor out = Tensor::empty_like(saved);
  kernels::binary(op, out, g, saved, out.dtype(), a);
  return out;
}

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

// ---- Arithmetic ----

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
  return record("SubBackward0", {a, b}, binary_result(BinaryOp::kSub, a, b, dtype, {}, factor), {},
                [factor](const Pass& p) {
                  if (p.needs(0)) p.give(0, p.g());
                  if (p.needs(1)) p.give(1, p.g() * -factor);
                });
}

Tensor mul(const Tensor& a, const Tensor& b) {
  return record("MulBackward0", {a, b}, binary_of(BinaryOp::kMul, a, b), {saved_for(b, a), saved_for(a, b)},
                [](const Pass& p) {
                  if (p.needs(0)) p.give(0, p.g() * p.saved(1));
                  if (p.needs(1)) p.give(1, p.g() * p.saved(0));
                });
}

Tensor div(const Tensor& a, const Tensor& b) {
  return record("DivBackward0", {a, b}, real_binary(BinaryOp::kDiv, a, b), {saved_for(b, a), b}, [](const Pass& p) {
    const Tensor by = p.saved(1);
    const Tensor scaled = p.g() / by;
    if (p.needs(0)) p.give(0, scaled);
    if (p.needs(1)) p.give(1, -(scaled * (p.saved(0) / by)));
  });
}

Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode) {
  require(rounding_mode == "floor" || rounding_mode == "trunc",
          "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'", rounding_mode);
  const BinaryOp op = rounding_mode == "floor" ? BinaryOp::kFloorDiv : BinaryOp::kTruncDiv;
  return record("DivBackward1", {a, b}, binary_of(op, a, b), {}, [](const Pass& p) {
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
  return remainder_like(BinaryOp::kRemainder, "RemainderBackward0", "floor", a, b);
}
Tensor fmod(const Tensor& a, const Tensor& b) {
  return remainder_like(BinaryOp::kFmod, "FmodBackward0", "trunc", a, b);
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

Tensor pow_number(const Tensor& a, const Tensor& b) {
  const double exponent = b.item();
  return record("PowBackward0", {a}, power_of(a, exponent, result_type(a, b)), {a}, [exponent](const Pass& p) {
    if (exponent == 0.0) return Tensor::zeros(p.g().shape(), p.g().options());
    const Tensor x = p.saved(0);
    return exponent == 2.0 ? p.g() * (x * 2.0) : p.g() * (pow(x, exponent - 1.0) * exponent);
  });
}

}  // namespace

Tensor pow(const Tensor& a, const Tensor& b) {
  if (b.is_wrapped_number()) return pow_number(a, b);
  Tensor y = binary_of(BinaryOp::kPow, a, b);
  return record("PowBackward1", {a, b}, y, {a, b, saved_for(b, y)}, [](const Pass& p) {
    const Tensor base = p.saved(0);
    const Tensor exponent = p.saved(1);
    if (p.needs(0)) p.give(0, where(eq(exponent, 0.0), 0.0, p.g() * (exponent * pow(base, exponent - 1.0))));
    if (p.needs(1)) {
      const Tensor zero = logical_and(eq(base, 0.0), ge(exponent, 0.0));
      p.give(1, p.g() * where(zero, 0.0, p.saved(2) * log(where(zero, 1.0, base))));
    }
  });
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
    const Tensor y = p.saved(0);
    const Tensor x = p.saved(1);
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
  return record("LerpBackward0", {a, b, weight}, ternary_of(TernaryOp::kLerp, a, b, weight, 1.0), {a, b, weight},
                [](const Pass& p) {
                  const Tensor w = p.saved(2);
                  if (p.needs(0)) p.give(0, p.g() * (1.0 - w));
                  if (p.needs(1)) p.give(1, p.g() * w);
                  if (p.needs(2)) p.give(2, p.g() * (p.saved(1) - p.saved(0)));
                });
}

Tensor affine(const Tensor& x, double scale, double shift) {
  return record("MulBackward0", {x}, real_unary(UnaryOp::kAffine, x, scale, shift), {},
                [scale](const Pass& p) { return scale == 1.0 ? p.g() : p.g() * scale; });
}

// ---- Functions of one tensor ----

namespace {

enum class Keeps : std::uint8_t { kNothing, kInput, kOutput };

// The formula gets the gradient and what was kept.
template <class Formula>
Tensor function(std::string_view name, UnaryOp op, const Tensor& x, Keeps keeps, Formula formula, bool real = true) {
  Tensor y = real ? real_unary(op, x) : unary_result(op, x, x.dtype());
  const Tensor& kept = keeps == Keeps::kInput ? x : y;
  if (keeps == Keeps::kNothing)
    return record(name, {x}, y, {}, [formula](const Pass& p) { return formula(p.g(), p.g()); });
  return record(name, {x}, y, {kept}, [formula](const Pass& p) { return formula(p.g(), p.saved(0)); });
}

Tensor no_gradient(std::string_view name, UnaryOp op, const Tensor& x) {
  return function(
      name, op, x, Keeps::kNothing,
      [](const Tensor& g, const Tensor&) { return Tensor::zeros(g.shape(), g.options()); }, false);
}

}  // namespace

Tensor neg(const Tensor& x) {
  require(x.dtype() != DType::kBool,
          "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
          "`~` or "
          "`logical_not()` operator instead.");
  return function(
      "NegBackward0", UnaryOp::kNeg, x, Keeps::kNothing, [](const Tensor& g, const Tensor&) { return -g; }, false);
}
Tensor abs(const Tensor& x) {
  return function(
      "AbsBackward0", UnaryOp::kAbs, x, Keeps::kInput, [](const Tensor& g, const Tensor& in) { return g * sign(in); },
      false);
}
Tensor sign(const Tensor& x) { return no_gradient("SignBackward0", UnaryOp::kSign, x); }
Tensor floor(const Tensor& x) { return no_gradient("FloorBackward0", UnaryOp::kFloor, x); }
Tensor ceil(const Tensor& x) { return no_gradient("CeilBackward0", UnaryOp::kCeil, x); }
Tensor round(const Tensor& x) { return no_gradient("RoundBackward0", UnaryOp::kRound, x); }
Tensor trunc(const Tensor& x) { return no_gradient("TruncBackward0", UnaryOp::kTrunc, x); }

Tensor square(const Tensor& x) { return pow(x, 2); }
Tensor reciprocal(const Tensor& x) {
  return function("ReciprocalBackward0", UnaryOp::kReciprocal, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return -g * (y * y); });
}
Tensor sqrt(const Tensor& x) {
  return function("SqrtBackward0", UnaryOp::kSqrt, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return g / (y * 2.0); });
}
Tensor rsqrt(const Tensor& x) {
  return function("RsqrtBackward0", UnaryOp::kRsqrt, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return g * -0.5 * (y * y * y); });
}
Tensor exp(const Tensor& x) {
  return function("ExpBackward0", UnaryOp::kExp, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return g * y; });
}
Tensor expm1(const Tensor& x) {
  return function("Expm1Backward0", UnaryOp::kExpm1, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return g * (y + 1.0); });
}
Tensor log(const Tensor& x) {
  return function("LogBackward0", UnaryOp::kLog, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g / in; });
}
Tensor log2(const Tensor& x) {
  return function("Log2Backward0", UnaryOp::kLog2, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g / (in * std::numbers::ln2); });
}
Tensor log10(const Tensor& x) {
  return function("Log10Backward0", UnaryOp::kLog10, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g / (in * std::numbers::ln10); });
}
Tensor log1p(const Tensor& x) {
  return function("Log1PBackward0", UnaryOp::kLog1p, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g / (in + 1.0); });
}
Tensor sin(const Tensor& x) {
  return function("SinBackward0", UnaryOp::kSin, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g * cos(in); });
}
Tensor cos(const Tensor& x) {
  return function("CosBackward0", UnaryOp::kCos, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g * -sin(in); });
}
Tensor tan(const Tensor& x) {
  return function("TanBackward0", UnaryOp::kTan, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return g * (1.0 + y * y); });
}
Tensor tanh(const Tensor& x) {
  return function("TanhBackward0", UnaryOp::kTanh, x, Keeps::kOutput, [](const Tensor& g, const Tensor& y) {
    return fused(BinaryOp::kTanhGrad, g, y, [&] { return g * (1.0 - y * y); });
  });
}
Tensor sigmoid(const Tensor& x) {
  return function("SigmoidBackward0", UnaryOp::kSigmoid, x, Keeps::kOutput, [](const Tensor& g, const Tensor& y) {
    return fused(BinaryOp::kSigmoidGrad, g, y, [&] { return g * y * (1.0 - y); });
  });
}
Tensor erf(const Tensor& x) {
  return function("ErfBackward0", UnaryOp::kErf, x, Keeps::kInput, [](const Tensor& g, const Tensor& in) {
    return g * exp(-(in * in)) * (2.0 * std::numbers::inv_sqrtpi);
  });
}

namespace {

Tensor clamped(const Tensor& x, const Tensor& low, const Tensor& high) {
  Tensor y = x;
  if (low.defined()) y = binary_of(BinaryOp::kMax, y, low);
  if (high.defined()) y = binary_of(BinaryOp::kMin, y, high);
  return y.is_same(x) ? x.clone() : y;
}

}  // namespace

Tensor clamp(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high) {
  const auto wrap = [](const std::optional<Scalar>& bound) { return bound ? Tensor::wrapped(*bound) : Tensor(); };
  return clamp(x, wrap(low), wrap(high));
}

Tensor clamp(const Tensor& x, const Tensor& low, const Tensor& high) {
  require(low.defined() || high.defined(), "torch.clamp: At least one of 'min' or 'max' must not be None");
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return clamped(x, low, high);
  }();
  return record("ClampBackward1", {x, low, high}, y, {x, low, high}, [](const Pass& p) {
    const Tensor in = p.saved(0);
    const Tensor below = p.saved(1).defined() ? lt(in, p.saved(1)) : Tensor();
    const Tensor above = p.saved(2).defined() ? gt(in, p.saved(2)) : Tensor();
    const Tensor outside = !below.defined() ? above : !above.defined() ? below : logical_or(below, above);
    if (p.needs(0)) p.give(0, where(outside, 0.0, p.g()));
    if (p.needs(1)) p.give(1, where(below, p.g(), 0.0));
    if (p.needs(2)) p.give(2, where(above, p.g(), 0.0));
  });
}

// ---- Activations ----

Tensor relu(const Tensor& x) {
  return function(
      "ReluBackward0", UnaryOp::kRelu, x, Keeps::kOutput,
      [](const Tensor& g, const Tensor& y) {
        return fused(BinaryOp::kReluGrad, g, y, [&] { return where(gt(y, 0.0), g, 0.0); });
      },
      false);
}

Tensor leaky_relu(const Tensor& x, double slope) {
  return record("LeakyReluBackward0", {x}, real_unary(UnaryOp::kLeakyRelu, x, slope), {x}, [slope](const Pass& p) {
    return fused(
        BinaryOp::kLeakyReluGrad, p.g(), p.saved(0), [&] { return where(gt(p.saved(0), 0.0), p.g(), p.g() * slope); },
        slope);
  });
}

Tensor elu(const Tensor& x, double alpha) {
  Tensor y = real_unary(UnaryOp::kElu, x, alpha);
  return record("EluBackward0", {x}, y, {x}, [alpha](const Pass& p) {
    const Tensor in = p.saved(0);
    return where(gt(in, 0.0), p.g(), p.g() * (exp(in) * alpha));
  });
}

Tensor gelu(const Tensor& x, GeluKind kind) {
  const bool exact = kind == GeluKind::kErf;
  Tensor y = real_unary(exact ? UnaryOp::kGelu : UnaryOp::kGeluTanh, x);
  return record("GeluBackward0", {x}, y, {x}, [exact](const Pass& p) {
    const Tensor in = p.saved(0);
    return fused(exact ? BinaryOp::kGeluGrad : BinaryOp::kGeluTanhGrad, p.g(), in, [&] {
      if (exact) {
        const Tensor cdf = (erf(in * std::numbers::sqrt2 * 0.5) + 1.0) * 0.5;
        const Tensor pdf = exp(in * in * -0.5) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
        return p.g() * (cdf + in * pdf);
      }
      const double slope = std::sqrt(2.0 * std::numbers::inv_pi);
      const Tensor t = tanh((in + in * in * in * 0.044715) * slope);
      return p.g() * 0.5 * (t + 1.0 + in * (1.0 - t * t) * (in * in * (3.0 * 0.044715) + 1.0) * slope);
    });
  });
}

Tensor silu(const Tensor& x) {
  return function("SiluBackward0", UnaryOp::kSilu, x, Keeps::kInput, [](const Tensor& g, const Tensor& in) {
    return fused(BinaryOp::kSiluGrad, g, in, [&] {
      const Tensor s = sigmoid(in);
      return g * s * (in * (1.0 - s) + 1.0);
    });
  });
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  return record("SoftplusBackward0", {x}, real_unary(UnaryOp::kSoftplus, x, beta, threshold), {x},
                [beta, threshold](const Pass& p) {
                  const Tensor scaled = p.saved(0) * beta;
                  return where(gt(scaled, threshold), p.g(), p.g() * sigmoid(scaled));
                });
}

Tensor logsigmoid(const Tensor& x) {
  return function("LogSigmoidBackward0", UnaryOp::kLogSigmoid, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return g * sigmoid(-in); });
}

// ---- Comparisons and logic ----

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
