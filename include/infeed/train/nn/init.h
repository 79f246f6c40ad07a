#pragma once
/// PyTorch's initial values, from default_generator() (tensor/random.h). In place, not recorded.

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::nn {

INFEED_API void uniform_(Tensor& tensor, double low, double high);
INFEED_API void normal_(Tensor& tensor, double mean = 0.0, double std = 1.0);

/// Uniform within sqrt(6 / ((1 + a^2) fan_in)) (He et al., 2015); fan_in: inputs of one output, from a weight [out, in, ...].
INFEED_API void kaiming_uniform_(Tensor& weight, double a = 0.0);

/// Uniform within gain sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010).
INFEED_API void xavier_uniform_(Tensor& weight, double gain = 1.0);

/// What Linear and Conv2d begin with: kaiming_uniform_ with a = sqrt(5), and the bias, if defined, within
/// 1 / sqrt(fan_in).
INFEED_API void reset_parameters(Tensor& weight, Tensor& bias);

[[nodiscard]] INFEED_API std::int64_t fan_in(const Tensor& weight);

}  // namespace infeed::nn
