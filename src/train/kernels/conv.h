#pragma once
/// Convolution by oneDNN, channels last.

#include <array>
#include <cstdint>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

struct ConvGeometry {
  std::array<std::int64_t, 2> stride;
  std::array<std::int64_t, 2> padding;
  std::array<std::int64_t, 2> dilation;
  std::int64_t groups;
};

// x, y and their gradients: float32 or bfloat16 [N, C, H, W], channels last. weight: [O, C / groups, kh, kw], contiguous;
// where the fast kernels want another layout it is reordered here (below 1 % of the time).

/// `bias` may be undefined; `relu` clips y at 0.
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvGeometry& geometry,
                            bool relu);
[[nodiscard]] Tensor conv2d_backward_input(const Tensor& grad, const Tensor& weight, const Shape& x_shape,
                                           const ConvGeometry& geometry);
struct ConvWeightGrads {
  Tensor weight;
  Tensor bias;  ///< undefined unless asked for
};
[[nodiscard]] ConvWeightGrads conv2d_backward_weight(const Tensor& grad, const Tensor& x, const Shape& weight_shape,
                                                     bool with_bias, const ConvGeometry& geometry);

/// Shape of y. Sizes may come out below 1 where the kernel exceeds the padded input.
[[nodiscard]] Shape conv2d_shape(const Shape& x, const Shape& weight, const ConvGeometry& geometry);

}  // namespace infeed::kernels
