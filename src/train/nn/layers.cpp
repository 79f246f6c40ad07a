// Constructors and forwards of the layers that have parameters.

#include <fmt/format.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/nn/batch_norm.h"
#include "infeed/train/nn/conv.h"
#include "infeed/train/nn/init.h"
#include "infeed/train/nn/linear.h"

namespace infeed::nn {

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias) {
  if (in_features <= 0 || out_features <= 0)
    throw ConfigError(fmt::format("Linear: {} to {} features; both must be positive.", in_features, out_features));
  weight = register_parameter("weight", Tensor::empty({out_features, in_features}));
  if (with_bias) bias = register_parameter("bias", Tensor::empty({out_features}));
  reset_parameters(weight, bias);
}

Tensor Linear::forward(const Tensor& x, Activation activation) const { return linear(x, weight, bias, activation); }

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  const Conv2dOptions& o = options_;
  if (o.in_channels <= 0 || o.out_channels <= 0 || o.groups <= 0 || o.in_channels % o.groups != 0 ||
      o.out_channels % o.groups != 0)
    throw ConfigError(
        fmt::format("Conv2d: in_channels ({}) and out_channels ({}) must be positive multiples of groups ({}).",
                    o.in_channels, o.out_channels, o.groups));
  if (o.kernel_size.height <= 0 || o.kernel_size.width <= 0)
    throw ConfigError(
        fmt::format("Conv2d: kernel_size {} x {} must be positive.", o.kernel_size.height, o.kernel_size.width));
  weight = register_parameter(
      "weight", Tensor::empty({o.out_channels, o.in_channels / o.groups, o.kernel_size.height, o.kernel_size.width}));
  if (o.bias) bias = register_parameter("bias", Tensor::empty({o.out_channels}));
  reset_parameters(weight, bias);
}

Tensor Conv2d::forward(const Tensor& x, Activation activation) const {
  return conv2d(x, weight, bias,
                {.stride = options_.stride,
                 .padding = options_.padding,
                 .dilation = options_.dilation,
                 .groups = options_.groups,
                 .activation = activation});
}

BatchNorm2d::BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options) : options_(options) {
  weight = register_parameter("weight", Tensor::ones({num_features}));
  bias = register_parameter("bias", Tensor::zeros({num_features}));
  running_mean = register_buffer("running_mean", Tensor::zeros({num_features}));
  running_var = register_buffer("running_var", Tensor::ones({num_features}));
  num_batches_tracked = register_buffer("num_batches_tracked", Tensor::zeros({}, DType::kInt64));
}

Tensor BatchNorm2d::forward(const Tensor& x, Activation activation) {
  if (is_training()) ++*num_batches_tracked.data<std::int64_t>();
  return batch_norm(
      x, running_mean, running_var, weight, bias,
      {.training = is_training(), .momentum = options_.momentum, .eps = options_.eps, .activation = activation});
}

}  // namespace infeed::nn
