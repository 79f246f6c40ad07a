#pragma once
/// Batch normalisation layer.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.1;  ///< weight of the new batch in the running statistics
};

/// Normalises each channel of [N, C, H, W]: by the batch in training, by the running statistics in evaluation.
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

}  // namespace infeed::nn
