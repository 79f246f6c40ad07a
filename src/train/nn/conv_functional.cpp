#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/nn/functional.h"
#include "train/kernels/conv.h"
#include "train/kernels/elementwise.h"
#include "train/nn/check_image.h"

namespace infeed::nn {
namespace {

using kernels::ConvGeometry;

struct Conv2dBackward final : Node {
  // `y` is undefined unless ReLU was applied.
  Conv2dBackward(const Tensor& x, const Tensor& weight, const Tensor& y, const ConvGeometry& g)
      : Node("conv2d"), geometry(g) {
    save({x, weight, y});
  }

  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const Tensor& x = saved(0);
    const Tensor& weight = saved(1);
    const Tensor& y = saved(2);
    Tensor grad = grads[0].contiguous(MemoryFormat::kChannelsLast);
    if (y.defined()) grad = kernels::relu_backward(grad, y);
    if (needs_input_grad(0)) inputs[0] = kernels::conv2d_backward_input(grad, weight, x.shape(), geometry);
    if (!needs_input_grad(1) && !needs_input_grad(2)) return;
    auto by_weight = kernels::conv2d_backward_weight(grad, x, weight.shape(), needs_input_grad(2), geometry);
    if (needs_input_grad(1)) inputs[1] = std::move(by_weight.weight);
    inputs[2] = std::move(by_weight.bias);
  }

  ConvGeometry geometry;
};

void check(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& g) {
  check_image("conv2d", x);
  if (weight.ndim() != 4)
    throw ConfigError(fmt::format("conv2d: the weight needs 4 dimensions, it is {}.", weight.shape().str()));
  for (std::size_t i = 0; i < 2; ++i) {
    if (g.stride[i] < 1 || g.dilation[i] < 1 || g.padding[i] < 0)
      throw ConfigError(fmt::format("conv2d: stride {} and dilation {} must be positive, padding {} not negative.",
                                    g.stride[i], g.dilation[i], g.padding[i]));
  }
  if (g.groups < 1 || x.size(1) != weight.size(1) * g.groups || weight.size(0) % g.groups != 0)
    throw ConfigError(
        fmt::format("conv2d: input {} and weight {} do not fit with groups {}: the input must have {} channels.",
                    x.shape().str(), weight.shape().str(), g.groups, weight.size(1) * g.groups));
  check_parameter("conv2d", "weight", weight, weight.shape());
  if (bias.defined()) check_parameter("conv2d", "bias", bias, {weight.size(0)});
  check_output("conv2d", x.shape(), kernels::conv2d_shape(x.shape(), weight.shape(), g));
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const Conv2dSpec& spec) {
  const ConvGeometry geometry{{spec.stride.height, spec.stride.width},
                              {spec.padding.height, spec.padding.width},
                              {spec.dilation.height, spec.dilation.width},
                              spec.groups};
  check(x, weight, bias, geometry);
  const Tensor image = x.contiguous(MemoryFormat::kChannelsLast);
  const Tensor plain = weight.contiguous();
  const Tensor plain_bias = bias.defined() ? bias.contiguous() : bias;
  const bool relu = spec.activation == Activation::kRelu;
  Tensor y = kernels::conv2d(image, plain, plain_bias, geometry, relu);
  if (needs_graph({image, plain, plain_bias}))
    connect(std::make_shared<Conv2dBackward>(image, plain, relu ? y : Tensor(), geometry), {image, plain, plain_bias},
            y);
  return y;
}

}  // namespace infeed::nn
