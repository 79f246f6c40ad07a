#pragma once
/// Normalisation of rows.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

struct LayerNormResult {
  Tensor y;
  Tensor mean;     ///< one per row
  Tensor inverse;  ///< 1 / sqrt(variance + eps), one per row
};

/// x: float32 [.., n], contiguous. weight, bias: float32 [n] or undefined.
[[nodiscard]] LayerNormResult layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

struct LayerNormGrads {
  Tensor x, weight, bias;
};
/// g as x. With h = (x - mean) inverse and d = g weight: dx = inverse (d - mean(d) - h mean(d h)); dweight = sum g h.
[[nodiscard]] LayerNormGrads layer_norm_backward(const Tensor& g, const Tensor& x, const Tensor& weight,
                                                 const Tensor& mean, const Tensor& inverse);

}  // namespace infeed::kernels
