#pragma once
/// Batch normalisation by oneDNN, with ReLU fused on request.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// What training's forward leaves for backward.
struct BatchNormResult {
  Tensor y;
  Tensor mean;       ///< [C], of this batch
  Tensor variance;   ///< [C], biased
  Tensor relu_mask;  ///< opaque; undefined unless `relu`
};

// x, y and their gradients: float32 or bfloat16 [N, C, H, W], channels last. scale, shift and statistics: float32 [C].
[[nodiscard]] BatchNormResult batch_norm_train(const Tensor& x, const Tensor& scale, const Tensor& shift, double eps,
                                               bool relu);
[[nodiscard]] Tensor batch_norm_eval(const Tensor& x, const Tensor& scale, const Tensor& shift, const Tensor& mean,
                                     const Tensor& variance, double eps, bool relu);
struct BatchNormGrads {
  Tensor x;
  Tensor scale;
  Tensor shift;
};
/// `relu_mask` undefined: without ReLU.
[[nodiscard]] BatchNormGrads batch_norm_backward(const Tensor& grad, const Tensor& x, const Tensor& scale,
                                                 const Tensor& shift, const Tensor& mean, const Tensor& variance,
                                                 const Tensor& relu_mask, double eps);

}  // namespace infeed::kernels
