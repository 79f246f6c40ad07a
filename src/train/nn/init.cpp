#include "infeed/train/nn/init.h"

#include <fmt/format.h>

#include <cmath>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/ops.h"

namespace infeed::nn {

void uniform_(Tensor& tensor, double low, double high) {
  const NoGradGuard no_grad;
  (void)infeed::uniform_(tensor, low, high);
}

void normal_(Tensor& tensor, double mean, double std) {
  const NoGradGuard no_grad;
  (void)infeed::normal_(tensor, mean, std);
}

std::int64_t fan_in(const Tensor& weight) {
  if (weight.ndim() < 2)
    throw ConfigError(fmt::format("fan_in: a weight has 2 or more dimensions, the shape is {}.", weight.shape().str()));
  return weight.size(0) == 0 ? 0 : weight.numel() / weight.size(0);
}

void kaiming_uniform_(Tensor& weight, double a) {
  const double bound =
      std::sqrt(3.0) * (std::sqrt(2.0 / (1.0 + a * a)) / std::sqrt(static_cast<double>(fan_in(weight))));
  nn::uniform_(weight, -bound, bound);
}

void xavier_uniform_(Tensor& weight, double gain) {
  const std::int64_t fan_out = weight.numel() / weight.size(1);
  const auto fans = static_cast<double>(fan_in(weight) + fan_out);
  const double bound = std::sqrt(3.0) * (gain * std::sqrt(2.0 / fans));
  nn::uniform_(weight, -bound, bound);
}

void reset_parameters(Tensor& weight, Tensor& bias) {
  kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in(weight)));
  nn::uniform_(bias, -bound, bound);
}

}  // namespace infeed::nn
