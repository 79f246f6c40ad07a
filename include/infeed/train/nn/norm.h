#pragma once
/// Normalisation layers: y = (x - mean) / sqrt(var + eps) * weight + bias, each over other elements; var is biased.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;            ///< weight of the new batch in the running statistics
  bool affine = true;               ///< has weight and bias
  bool track_running_stats = true;  ///< false: evaluation, too, takes the batch's statistics
};

/// Normalises each channel of [N, C, ..]: by the batch in training, by the running statistics in evaluation (Ioffe and
/// Szegedy, 2015).
class INFEED_API BatchNorm2d : public Module {
 public:
  explicit BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, Activation::kNone); }
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation);

  Tensor weight, bias;               ///< [C], 1 and 0 at first
  Tensor running_mean, running_var;  ///< [C], 0 and 1 at first
  Tensor num_batches_tracked;        ///< int64 []

 private:
  BatchNormOptions options_;
};
using BatchNorm1d = BatchNorm2d;  ///< [N, C] or [N, C, L]

struct NormOptions {
  double eps = 1e-5;
  bool affine = true;  ///< has weight and, unless forbidden, bias
  bool bias = true;
};

/// Over the last dimensions, `normalized_shape` (Ba, Kiros and Hinton, 2016).
class INFEED_API LayerNorm : public Module {
 public:
  explicit LayerNorm(const Shape& normalized_shape, const NormOptions& options = {});
  explicit LayerNorm(std::int64_t features, const NormOptions& options = {}) : LayerNorm(Shape{features}, options) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return layer_norm(x, shape_, weight, bias, eps_); }

  Tensor weight, bias;  ///< normalized_shape, 1 and 0 at first

 private:
  Shape shape_;
  double eps_;
};

/// Over each of `num_groups` parts of the channels of [N, C, ..] (Wu and He, 2018).
class INFEED_API GroupNorm : public Module {
 public:
  GroupNorm(std::int64_t num_groups, std::int64_t num_channels, const NormOptions& options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) override { return group_norm(x, groups_, weight, bias, eps_); }

  Tensor weight, bias;  ///< [C], 1 and 0 at first

 private:
  std::int64_t groups_;
  double eps_;
};

}  // namespace infeed::nn
