// Arithmetic, functions, comparisons: names and argument names are PyTorch's.

#include "infeed/train/autograd/elementwise.h"

#include "binder.h"

namespace infeed::python {
namespace {

Tensor plain_add(const Tensor& a, const Tensor& b) { return add(a, b); }
Tensor plain_sub(const Tensor& a, const Tensor& b) { return sub(a, b); }
Tensor plain_div(const Tensor& a, const Tensor& b) { return div(a, b); }

void bind_arithmetic(const Binder& to) {
  to.both(
      "add", [](const Operand& a, const Operand& b, const Scalar& alpha) { return add(a, b, alpha); }, "input"_a,
      "other"_a, nb::kw_only(), "alpha"_a = Scalar(1));
  to.both(
      "sub", [](const Operand& a, const Operand& b, const Scalar& alpha) { return sub(a, b, alpha); }, "input"_a,
      "other"_a, nb::kw_only(), "alpha"_a = Scalar(1));
  to.both(
      "div",
      [](const Operand& a, const Operand& b, const std::optional<std::string>& rounding_mode) {
        return rounding_mode ? div(a, b, *rounding_mode) : div(a, b);
      },
      "input"_a, "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none());
  to.binary<mul>("mul", false);
  to.binary<mul>("multiply", false);
  to.binary<plain_div>("true_divide", false);
  to.binary<floor_divide>("floor_divide");
  to.binary<remainder>("remainder");
  to.binary<fmod>("fmod");
  to.binary<pow>("pow", true, "exponent");
  to.binary<maximum>("maximum", false);
  to.binary<minimum>("minimum", false);
  to.binary<atan2>("atan2");
  to.tensor.def(
      "where",
      [](const Tensor& x, const Tensor& condition, const Operand& other) { return where(condition, x, other); },
      "condition"_a, "other"_a);
}

void bind_arithmetic_in_place(const Binder& to) {
  to.tensor.def(
      "add_", [](Tensor x, const Operand& y, const Scalar& alpha) { return x.add_(y, alpha); }, "other"_a,
      nb::kw_only(), "alpha"_a = Scalar(1));
  to.tensor.def(
      "sub_", [](Tensor x, const Operand& y, const Scalar& alpha) { return x.sub_(y, alpha); }, "other"_a,
      nb::kw_only(), "alpha"_a = Scalar(1));
  to.tensor.def(
      "mul_", [](Tensor x, const Operand& y) { return x.mul_(y); }, "other"_a);
  to.tensor.def(
      "div_",
      [](Tensor x, const Operand& y, const std::optional<std::string>& rounding_mode) {
        if (!rounding_mode) return x.div_(y);
        return in_place(x, {y.tensor}, [&](const Tensor& t) { return div(t, y, *rounding_mode); });
      },
      "other"_a, nb::kw_only(), "rounding_mode"_a = nb::none());
}

void bind_infix(const Binder& to) {
  to.infix<plain_add>("__add__", "__radd__");
  to.infix<plain_sub>("__sub__", "__rsub__");
  to.infix<mul>("__mul__", "__rmul__");
  to.infix<plain_div>("__truediv__", "__rtruediv__");
  to.infix<floor_divide>("__floordiv__", "__rfloordiv__");
  to.infix<remainder>("__mod__", "__rmod__");
  to.infix<pow>("__pow__", "__rpow__");
  to.infix<bitwise_and>("__and__", "__rand__");
  to.infix<bitwise_or>("__or__", "__ror__");
  to.infix<bitwise_xor>("__xor__", "__rxor__");
  to.infix<eq>("__eq__");
  to.infix<ne>("__ne__");
  to.infix<lt>("__lt__");
  to.infix<le>("__le__");
  to.infix<gt>("__gt__");
  to.infix<ge>("__ge__");
  to.tensor.def("__neg__", [](const Tensor& x) { return neg(x); });
  to.tensor.def("__pos__", [](const Tensor& x) { return x; });
  to.tensor.def("__abs__", [](const Tensor& x) { return abs(x); });
  to.tensor.def("__invert__", [](const Tensor& x) { return bitwise_not(x); });
  to.tensor.def(
      "__iadd__", [](Tensor x, const Operand& y) { return x.add_(y); }, nb::is_operator());
  to.tensor.def(
      "__isub__", [](Tensor x, const Operand& y) { return x.sub_(y); }, nb::is_operator());
  to.tensor.def(
      "__imul__", [](Tensor x, const Operand& y) { return x.mul_(y); }, nb::is_operator());
  to.tensor.def(
      "__itruediv__", [](Tensor x, const Operand& y) { return x.div_(y); }, nb::is_operator());
  to.in_place_binary<floor_divide>("__ifloordiv__", nb::is_operator());
  to.in_place_binary<remainder>("__imod__", nb::is_operator());
  to.in_place_binary<pow>("__ipow__", nb::is_operator());
  to.in_place_binary<bitwise_and>("__iand__", nb::is_operator());
  to.in_place_binary<bitwise_or>("__ior__", nb::is_operator());
  to.in_place_binary<bitwise_xor>("__ixor__", nb::is_operator());
}

void bind_functions(const Binder& to) {
  to.unary<neg>("neg");
  to.unary<neg>("negative");
  to.unary<abs>("abs");
  to.unary<abs>("absolute");
  to.unary<sign>("sign");
  to.unary<square>("square");
  to.unary<reciprocal>("reciprocal");
  to.unary<sqrt>("sqrt");
  to.unary<rsqrt>("rsqrt");
  to.unary<exp>("exp");
  to.unary<expm1>("expm1");
  to.unary<log>("log");
  to.unary<log2>("log2");
  to.unary<log10>("log10");
  to.unary<log1p>("log1p");
  to.unary<sin>("sin");
  to.unary<cos>("cos");
  to.unary<tan>("tan");
  to.unary<tanh>("tanh");
  to.unary<sigmoid>("sigmoid");
  to.unary<erf>("erf");
  to.unary<floor>("floor");
  to.unary<ceil>("ceil");
  to.unary<round>("round");
  to.unary<trunc>("trunc");
  to.unary<relu>("relu");
  to.both(
      "isnan", [](const Tensor& x) { return isnan(x); }, "input"_a);
  to.both(
      "isinf", [](const Tensor& x) { return isinf(x); }, "input"_a);
  to.both(
      "isfinite", [](const Tensor& x) { return isfinite(x); }, "input"_a);
  to.both(
      "logical_not", [](const Tensor& x) { return logical_not(x); }, "input"_a);
  to.both(
      "bitwise_not", [](const Tensor& x) { return bitwise_not(x); }, "input"_a);
}

// A bound is absent, a number or a tensor.
Tensor clamped(const Tensor& x, const std::optional<Operand>& low, const std::optional<Operand>& high) {
  if (!low && !high) throw RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None");
  const auto is_number = [](const std::optional<Operand>& bound) {
    return !bound || bound->tensor.is_wrapped_number();
  };
  if (!is_number(low) || !is_number(high))
    return clamp(x, low ? low->tensor : Tensor(), high ? high->tensor : Tensor());
  const auto number = [](const std::optional<Operand>& bound) {
    return bound ? std::optional(bound->tensor.item_scalar()) : std::nullopt;
  };
  return clamp(x, number(low), number(high));
}

void bind_clamp(const Binder& to) {
  using Bound = std::optional<Operand>;
  for (const char* name : {"clamp", "clip"})
    to.both(name, clamped, "input"_a, "min"_a = nb::none(), "max"_a = nb::none());
  for (const char* name : {"clamp_", "clip_"})
    to.tensor.def(
        name,
        [](Tensor x, const Bound& low, const Bound& high) {
          return in_place(x, {}, [&](const Tensor& t) { return clamped(t, low, high); });
        },
        "min"_a = nb::none(), "max"_a = nb::none());
  to.both(
      "clamp_min", [](const Tensor& x, const Operand& low) { return clamped(x, low, {}); }, "input"_a, "min"_a);
  to.both(
      "clamp_max", [](const Tensor& x, const Operand& high) { return clamped(x, {}, high); }, "input"_a, "max"_a);
  to.tensor.def("clamp_min_", [](Tensor x, const Operand& low) {
    return in_place(x, {}, [&](const Tensor& t) { return clamped(t, low, {}); });
  });
  to.tensor.def("clamp_max_", [](Tensor x, const Operand& high) {
    return in_place(x, {}, [&](const Tensor& t) { return clamped(t, {}, high); });
  });
}

void bind_comparisons(const Binder& to) {
  to.binary<eq>("eq", false);
  to.binary<ne>("ne", false);
  to.binary<lt>("lt", false);
  to.binary<le>("le", false);
  to.binary<gt>("gt", false);
  to.binary<ge>("ge", false);
  to.binary<logical_and>("logical_and", false);
  to.binary<logical_or>("logical_or", false);
  to.binary<logical_xor>("logical_xor", false);
  to.binary<bitwise_and>("bitwise_and", false);
  to.binary<bitwise_or>("bitwise_or", false);
  to.binary<bitwise_xor>("bitwise_xor", false);
  to.both(
      "equal", [](const Tensor& a, const Tensor& b) { return equal(a, b); }, "input"_a, "other"_a);
  to.both("allclose", allclose, "input"_a, "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
  to.both("isclose", isclose, "input"_a, "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false);
}

void bind_of_three(const Binder& to) {
  to.module.def(
      "where", [](const Tensor& condition, const Operand& a, const Operand& b) { return where(condition, a, b); },
      "condition"_a, "input"_a, "other"_a);
  to.both(
      "lerp", [](const Tensor& a, const Tensor& b, const Operand& weight) { return lerp(a, b, weight); }, "input"_a,
      "end"_a, "weight"_a);
  to.tensor.def(
      "lerp_",
      [](Tensor a, const Tensor& b, const Operand& weight) {
        return in_place(a, {b, weight.tensor}, [&](const Tensor& t) { return lerp(t, b, weight); });
      },
      "end"_a, "weight"_a);
  to.both("addcmul", addcmul, "input"_a, "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = Scalar(1));
  to.both("addcdiv", addcdiv, "input"_a, "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = Scalar(1));
  to.tensor.def(
      "addcmul_",
      [](Tensor x, const Tensor& a, const Tensor& b, const Scalar& value) {
        return in_place(x, {a, b}, [&](const Tensor& t) { return addcmul(t, a, b, value); });
      },
      "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = Scalar(1));
  to.tensor.def(
      "addcdiv_",
      [](Tensor x, const Tensor& a, const Tensor& b, const Scalar& value) {
        return in_place(x, {a, b}, [&](const Tensor& t) { return addcdiv(t, a, b, value); });
      },
      "tensor1"_a, "tensor2"_a, nb::kw_only(), "value"_a = Scalar(1));
}

// Those that PyTorch keeps in nn.functional.
void bind_activations(const Binder& to) {
  auto& m = to.module;
  m.def(
      "leaky_relu", [](const Tensor& x, double slope) { return leaky_relu(x, slope); }, "input"_a,
      "negative_slope"_a = 0.01);
  m.def(
      "hardtanh", [](const Tensor& x, double low, double high) { return hardtanh(x, low, high); }, "input"_a,
      "min_val"_a = -1.0, "max_val"_a = 1.0);
  m.def(
      "elu", [](const Tensor& x, double alpha) { return elu(x, alpha); }, "input"_a, "alpha"_a = 1.0);
  m.def(
      "gelu",
      [](const Tensor& x, const std::string& approximate) {
        if (approximate != "none" && approximate != "tanh")
          throw RuntimeError("approximate argument must be either none or tanh.");
        const Unlocked unlocked(x);
        return gelu(x, approximate == "none" ? GeluKind::kErf : GeluKind::kTanh);
      },
      "input"_a, "approximate"_a = "none");
  m.def(
      "silu", [](const Tensor& x) { return silu(x); }, "input"_a);
  m.def(
      "softplus", [](const Tensor& x, double beta, double threshold) { return softplus(x, beta, threshold); },
      "input"_a, "beta"_a = 1.0, "threshold"_a = 20.0);
  m.def(
      "logsigmoid", [](const Tensor& x) { return logsigmoid(x); }, "input"_a);
}

// The same in place, for modules with inplace=True.
void bind_activations_in_place(nb::module_& m) {
  m.def(
      "leaky_relu_",
      [](Tensor x, double slope) { return in_place(x, {}, [&](const Tensor& t) { return leaky_relu(t, slope); }); },
      "input"_a, "negative_slope"_a = 0.01);
  m.def(
      "hardtanh_",
      [](Tensor x, double low, double high) {
        return in_place(x, {}, [&](const Tensor& t) { return hardtanh(t, low, high); });
      },
      "input"_a, "min_val"_a = -1.0, "max_val"_a = 1.0);
  m.def(
      "elu_", [](Tensor x, double alpha) { return in_place(x, {}, [&](const Tensor& t) { return elu(t, alpha); }); },
      "input"_a, "alpha"_a = 1.0);
  m.def(
      "silu_", [](Tensor x) { return in_place(x, {}, [](const Tensor& t) { return silu(t); }); }, "input"_a);
}

}  // namespace

void bind_elementwise(const Binder& to) {
  bind_arithmetic(to);
  bind_arithmetic_in_place(to);
  bind_infix(to);
  bind_functions(to);
  bind_clamp(to);
  bind_comparisons(to);
  bind_of_three(to);
  bind_activations(to);
  bind_activations_in_place(to.module);
}

}  // namespace infeed::python
