#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "train/kernels/elementwise.h"
#include "train/kernels/matmul.h"
#include "train/nn/check_image.h"

namespace infeed::nn {
namespace {

struct LinearBackward final : Node {
  // `y` is undefined unless ReLU was applied.
  LinearBackward(const Tensor& x, const Tensor& weight, const Tensor& y) : Node("linear") { save({x, weight, y}); }

  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const Tensor& x = saved(0);
    const Tensor& y = saved(2);
    const Tensor grad = y.defined() ? kernels::relu_backward(grads[0], y) : grads[0];
    if (needs_input_grad(0)) inputs[0] = kernels::matmul(grad, saved(1));
    if (needs_input_grad(1)) inputs[1] = kernels::matmul(grad.t(), x);
    if (needs_input_grad(2)) inputs[2] = sum(grad, {0});
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation activation) {
  if (x.dtype() != DType::kFloat32 || x.ndim() < 1 || weight.ndim() != 2 || x.size(-1) != weight.size(1))
    throw ConfigError(fmt::format("linear: input {}{} does not fit weight {}: it must be float32 [.., {}].",
                                  to_string(x.dtype()), x.shape().str(), weight.shape().str(),
                                  weight.ndim() == 2 ? weight.size(1) : 0));
  check_parameter("linear", "weight", weight, weight.shape());
  if (bias.defined()) check_parameter("linear", "bias", bias, {weight.size(0)});
  const Tensor rows = x.ndim() == 2 ? x : x.reshape({-1, x.size(-1)});
  const bool relu = activation == Activation::kRelu;
  Tensor y = kernels::matmul(rows, weight.detach().t(), bias.defined() ? bias.contiguous() : bias, relu);
  if (needs_graph({rows, weight, bias}))
    connect(std::make_shared<LinearBackward>(rows, weight, relu ? y : Tensor()), {rows, weight, bias}, y);
  if (x.ndim() == 2) return y;
  Shape shape = x.shape();
  shape[x.ndim() - 1] = weight.size(0);
  return y.view(shape);
}

}  // namespace infeed::nn
