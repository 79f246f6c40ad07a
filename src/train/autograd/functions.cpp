// Functions of one tensor: the kernel, and the formula of backward.

#include <cmath>
#include <numbers>

#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/reduction.h"
#include "train/autograd/record.h"
#include "train/autograd/result.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/check.h"

namespace infeed {

using kernels::BinaryOp;
using kernels::UnaryOp;

namespace {

// One pass where nothing is recorded, tensor operations under create_graph.
template <class Formula>
Tensor fused(BinaryOp op, const Tensor& g, const Tensor& saved, Formula formula, double a = 1.0) {
  if (needs_graph({g, saved})) return formula();
  Tensor out = Tensor::empty_like(saved);
  kernels::binary(op, out, g, saved, out.dtype(), a);
  return out;
}

}  // namespace

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
      "AbsBackward0", UnaryOp::kAbs, x, Keeps::kInput,
      [](const Tensor& g, const Tensor& in) { return times(g, sign(in)); }, false);
}
Tensor sign(const Tensor& x) { return no_gradient("SignBackward0", UnaryOp::kSign, x); }
Tensor floor(const Tensor& x) { return no_gradient("FloorBackward0", UnaryOp::kFloor, x); }
Tensor ceil(const Tensor& x) { return no_gradient("CeilBackward0", UnaryOp::kCeil, x); }
Tensor round(const Tensor& x) { return no_gradient("RoundBackward0", UnaryOp::kRound, x); }
Tensor trunc(const Tensor& x) { return no_gradient("TruncBackward0", UnaryOp::kTrunc, x); }

Tensor square(const Tensor& x) { return pow(x, 2); }
Tensor reciprocal(const Tensor& x) {
  return function("ReciprocalBackward0", UnaryOp::kReciprocal, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return -times(g, y * y); });
}
Tensor sqrt(const Tensor& x) {
  return function("SqrtBackward0", UnaryOp::kSqrt, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return over(g, y * 2.0); });
}
Tensor rsqrt(const Tensor& x) {
  return function("RsqrtBackward0", UnaryOp::kRsqrt, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return times(g, y * y * y) * -0.5; });
}
Tensor exp(const Tensor& x) {
  return function("ExpBackward0", UnaryOp::kExp, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return times(g, y); });
}
Tensor expm1(const Tensor& x) {
  return function("Expm1Backward0", UnaryOp::kExpm1, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return times(g, y + 1.0); });
}
Tensor log(const Tensor& x) {
  return function("LogBackward0", UnaryOp::kLog, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return over(g, in); });
}
Tensor log2(const Tensor& x) {
  return function("Log2Backward0", UnaryOp::kLog2, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return over(g, in * std::numbers::ln2); });
}
Tensor log10(const Tensor& x) {
  return function("Log10Backward0", UnaryOp::kLog10, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return over(g, in * std::numbers::ln10); });
}
Tensor log1p(const Tensor& x) {
  return function("Log1PBackward0", UnaryOp::kLog1p, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return over(g, in + 1.0); });
}
Tensor sin(const Tensor& x) {
  return function("SinBackward0", UnaryOp::kSin, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return times(g, cos(in)); });
}
Tensor cos(const Tensor& x) {
  return function("CosBackward0", UnaryOp::kCos, x, Keeps::kInput,
                  [](const Tensor& g, const Tensor& in) { return -times(g, sin(in)); });
}
Tensor tan(const Tensor& x) {
  return function("TanBackward0", UnaryOp::kTan, x, Keeps::kOutput,
                  [](const Tensor& g, const Tensor& y) { return times(g, 1.0 + y * y); });
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

// False for NaN.
Tensor within(const Tensor& x, const Tensor& low, const Tensor& high) {
  if (!low.defined()) return le(x, high);
  return high.defined() ? logical_and(ge(x, low), le(x, high)) : ge(x, low);
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
  const auto number = [](const Tensor& bound) { return !bound.defined() || bound.is_wrapped_number(); };
  return record(number(low) && number(high) ? "ClampBackward1" : "ClampBackward0", {x, low, high}, y, {x, low, high},
                [](const Pass& p) {
                  const Tensor in = p.saved(0);
                  const Tensor below = p.saved(1).defined() ? lt(in, p.saved(1)) : Tensor();
                  const Tensor above = p.saved(2).defined() ? gt(in, p.saved(2)) : Tensor();
                  if (p.needs(0)) p.give(0, where(within(in, p.saved(1), p.saved(2)), p.g(), 0.0));
                  if (p.needs(1)) p.give(1, where(below, p.g(), 0.0));
                  if (p.needs(2)) p.give(2, where(above, p.g(), 0.0));
                });
}

Tensor hardtanh(const Tensor& x, double low, double high) {
  require<ValueError>(low <= high, "hardtanh: max_val must be larger than min_val");
  const Tensor y = [&] {
    const NoGradGuard no_grad;
    return clamped(x, Tensor::wrapped(low), Tensor::wrapped(high)).to(x.dtype());
  }();
  return record("HardtanhBackward0", {x}, y, {x}, [low, high](const Pass& p) {
    const Tensor in = p.saved(0);
    return where(logical_and(gt(in, low), lt(in, high)), p.g(), 0.0);
  });
}

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

}  // namespace infeed
