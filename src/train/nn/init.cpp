#include "infeed/train/nn/init.h"

#include <fmt/format.h>

#include <cmath>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"

namespace infeed::nn {

void uniform_(Tensor& tensor, float low, float high) {
  const NoGradGuard no_grad;
  tensor.copy_(Tensor::uniform(tensor.shape(), low, high));
}

void normal_(Tensor& tensor, float mean, float std) {
  const NoGradGuard no_grad;
  tensor.copy_(affine(Tensor::randn(tensor.shape()), static_cast<double>(std), static_cast<double>(mean)));
}

std::int64_t fan_in(const Tensor& weight) {
  if (weight.ndim() < 2)
    throw ConfigError(fmt::format("fan_in: a weight has 2 or more dimensions, the shape is {}.", weight.shape().str()));
  return weight.size(0) == 0 ? 0 : weight.numel() / weight.size(0);
}

void kaiming_uniform_(Tensor& weight, double a) {
  const auto bound = static_cast<float>(std::sqrt(6.0 / ((1.0 + a * a) * static_cast<double>(fan_in(weight)))));
  uniform_(weight, -bound, bound);
}

void reset_parameters(Tensor& weight, Tensor& bias) {
  kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const auto bound = static_cast<float>(1.0 / std::sqrt(static_cast<double>(fan_in(weight))));
  uniform_(bias, -bound, bound);
}

}  // namespace infeed::nn
