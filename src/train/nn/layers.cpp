// Constructors and forwards of the layers that have parameters.

#include <fmt/format.h>

#include <string_view>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/nn/activation.h"
#include "infeed/train/nn/conv.h"
#include "infeed/train/nn/init.h"
#include "infeed/train/nn/linear.h"
#include "infeed/train/nn/norm.h"
#include "train/tensor/check.h"

namespace infeed::nn {
namespace {

void check_channels(std::string_view layer, std::int64_t in, std::int64_t out, std::int64_t groups, Size2 kernel) {
  if (in <= 0 || out <= 0 || groups <= 0 || in % groups != 0 || out % groups != 0)
    throw ConfigError(
        fmt::format("{}: in_channels ({}) and out_channels ({}) must be positive multiples of groups ({}).", layer, in,
                    out, groups));
  if (kernel.height <= 0 || kernel.width <= 0)
    throw ConfigError(fmt::format("{}: kernel_size {} x {} must be positive.", layer, kernel.height, kernel.width));
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features, bool with_bias) {
  if (in_features <= 0 || out_features <= 0)
    throw ConfigError(fmt::format("Linear: {} to {} features; both must be positive.", in_features, out_features));
  weight = register_parameter("weight", Tensor::empty({out_features, in_features}));
  if (with_bias) bias = register_parameter("bias", Tensor::empty({out_features}));
  reset_parameters(weight, bias);
}

Tensor Linear::forward(const Tensor& x, Activation activation) const { return linear(x, weight, bias, activation); }

Embedding::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim, std::optional<std::int64_t> padding_idx)
    : padding_idx_(padding_idx.value_or(-1)) {
  if (num_embeddings <= 0 || embedding_dim <= 0)
    throw ConfigError(
        fmt::format("Embedding: {} rows of {} values; both must be positive.", num_embeddings, embedding_dim));
  if (padding_idx && (*padding_idx < -num_embeddings || *padding_idx >= num_embeddings))
    throw ConfigError(fmt::format("Embedding: padding_idx {} is not within {} rows.", *padding_idx, num_embeddings));
  if (padding_idx && *padding_idx < 0) padding_idx_ += num_embeddings;
  weight = register_parameter("weight", Tensor::empty({num_embeddings, embedding_dim}));
  const NoGradGuard no_grad;
  nn::normal_(weight);
  if (padding_idx) weight.select(0, padding_idx_).zero_();
}

Dropout::Dropout(double p) : p_(p) {
  require<ValueError>(p >= 0.0 && p <= 1.0, "dropout probability has to be between 0 and 1, but got {}", p);
}

Conv1d::Conv1d(const Conv1dOptions& options) : options_(options) {
  const Conv1dOptions& o = options_;
  check_channels("Conv1d", o.in_channels, o.out_channels, o.groups, o.kernel_size);
  weight = register_parameter("weight", Tensor::empty({o.out_channels, o.in_channels / o.groups, o.kernel_size}));
  if (o.bias) bias = register_parameter("bias", Tensor::empty({o.out_channels}));
  reset_parameters(weight, bias);
}

Tensor Conv1d::forward(const Tensor& x) {
  const Conv1dOptions& o = options_;
  return conv1d(x, weight, bias,
                {.stride = o.stride, .padding = o.padding, .dilation = o.dilation, .groups = o.groups});
}

Conv2d::Conv2d(const Conv2dOptions& options) : options_(options) {
  const Conv2dOptions& o = options_;
  check_channels("Conv2d", o.in_channels, o.out_channels, o.groups, o.kernel_size);
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

ConvTranspose2d::ConvTranspose2d(const ConvTranspose2dOptions& options) : options_(options) {
  const ConvTranspose2dOptions& o = options_;
  check_channels("ConvTranspose2d", o.in_channels, o.out_channels, o.groups, o.kernel_size);
  weight = register_parameter(
      "weight", Tensor::empty({o.in_channels, o.out_channels / o.groups, o.kernel_size.height, o.kernel_size.width}));
  if (o.bias) bias = register_parameter("bias", Tensor::empty({o.out_channels}));
  reset_parameters(weight, bias);
}

Tensor ConvTranspose2d::forward(const Tensor& x) {
  return conv_transpose2d(x, weight, bias,
                          {.stride = options_.stride,
                           .padding = options_.padding,
                           .output_padding = options_.output_padding,
                           .dilation = options_.dilation,
                           .groups = options_.groups});
}

BatchNorm2d::BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options) : options_(options) {
  if (options.affine) {
    weight = register_parameter("weight", Tensor::ones({num_features}));
    bias = register_parameter("bias", Tensor::zeros({num_features}));
  }
  if (!options.track_running_stats) return;
  running_mean = register_buffer("running_mean", Tensor::zeros({num_features}));
  running_var = register_buffer("running_var", Tensor::ones({num_features}));
  num_batches_tracked = register_buffer("num_batches_tracked", Tensor::zeros({}, DType::kInt64));
}

Tensor BatchNorm2d::forward(const Tensor& x, Activation activation) {
  const bool by_batch = is_training() || !running_mean.defined();
  if (is_training() && num_batches_tracked.defined()) num_batches_tracked.add_(1);
  return batch_norm(
      x, running_mean, running_var, weight, bias,
      {.training = by_batch, .momentum = options_.momentum, .eps = options_.eps, .activation = activation});
}

LayerNorm::LayerNorm(const Shape& normalized_shape, const NormOptions& options)
    : shape_(normalized_shape), eps_(options.eps) {
  if (!options.affine) return;
  weight = register_parameter("weight", Tensor::ones(shape_));
  if (options.bias) bias = register_parameter("bias", Tensor::zeros(shape_));
}

GroupNorm::GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const NormOptions& options)
    : groups_(num_groups), eps_(options.eps) {
  if (num_groups <= 0 || num_channels % num_groups != 0)
    throw ConfigError(
        fmt::format("GroupNorm: num_channels ({}) must be a multiple of num_groups ({}).", num_channels, num_groups));
  if (!options.affine) return;
  weight = register_parameter("weight", Tensor::ones({num_channels}));
  if (options.bias) bias = register_parameter("bias", Tensor::zeros({num_channels}));
}

}  // namespace infeed::nn
