#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/autograd/autocast.h"
#include "train/autograd/record.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/matmul.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

void check(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require(x.ndim() >= 1 && weight.ndim() == 2,
          "linear: expected an input of one or more dimensions and a 2-D weight, got {} and {}", x.shape(),
          weight.shape());
  require(x.size(-1) == weight.size(1), "mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
          x.size(-1) == 0 ? 0 : x.numel() / x.size(-1), x.size(-1), weight.size(1), weight.size(0));
  require(x.dtype() == weight.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
          "mat1 and mat2 must have the same dtype, but got {} and {}", x.dtype(), weight.dtype());
  require(!bias.defined() || bias.shape() == Shape{weight.size(0)}, "linear: the bias must have shape [{}], it is {}",
          weight.size(0), bias.defined() ? bias.shape() : Shape());
}

// x: [rows, in]. y is saved where ReLU was applied.
Tensor linear_rows(const Tensor& x, const Tensor& weight, const Tensor& bias, bool relu) {
  Tensor y = kernels::matmul(x, weight.detach().t(), bias.defined() ? bias.detach().contiguous() : bias, relu);
  const auto formula = [](const Pass& p, int first) {
    const Tensor out = p.saved(2);
    Tensor g = p.g();
    if (out.defined()) g = needs_graph({g, out}) ? where(gt(out, 0.0), g, 0.0) : kernels::relu_backward(g, out);
    if (p.needs(first)) p.give(first, mm(g, p.saved(1)));
    if (p.needs(first + 1)) p.give(first + 1, mm(g.t(), p.saved(0)));
    if (first == 1 && p.needs(0)) p.give(0, sum(g, {0}));
  };
  const Tensor clipped = relu ? y : Tensor();
  const Operands saved = {saved_for(weight, x), saved_for(x, weight), clipped};
  if (bias.defined())
    return record("AddmmBackward0", {bias, x, weight}, y, saved, [formula](const Pass& p) { formula(p, 1); });
  return record("MmBackward0", {x, weight}, y, saved, [formula](const Pass& p) { formula(p, 0); });
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  if (amp::is_active()) return amp::lowered(linear, x, weight, bias, activation);
  check(x, weight, bias);
  const bool relu = activation == Activation::kRelu;
  if (x.ndim() == 2) return linear_rows(x, weight, bias, relu);
  const std::int64_t rows = x.size(-1) == 0
                                ? Shape(x.shape().span().first(static_cast<std::size_t>(x.ndim() - 1))).numel()
                                : x.numel() / x.size(-1);
  Shape shape = x.shape();
  shape[x.ndim() - 1] = weight.size(0);
  return linear_rows(x.reshape({rows, x.size(-1)}), weight, bias, relu).view(shape);
}

}  // namespace infeed::nn
