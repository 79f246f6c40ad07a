#pragma once
/// Pooling by oneDNN, channels last.

#include <array>
#include <cstdint>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

struct PoolGeometry {
  std::array<std::int64_t, 2> kernel;
  std::array<std::int64_t, 2> stride;
  std::array<std::int64_t, 2> padding;
  std::array<std::int64_t, 2> dilation = {1, 1};
  bool ceil_mode = false;

  /// Elements of one dimension from a window's first to its last.
  [[nodiscard]] std::int64_t extent(std::size_t i) const noexcept { return (kernel[i] - 1) * dilation[i] + 1; }
};

struct MaxPoolResult {
  Tensor y;
  Tensor where;  ///< opaque: which input won; undefined unless training
};

// x, y and gradients: float32 or bfloat16 [N, C, H, W], channels last; dilation 1.
[[nodiscard]] MaxPoolResult max_pool2d(const Tensor& x, const PoolGeometry& geometry, bool training);
[[nodiscard]] Tensor max_pool2d_backward(const Tensor& grad, const Tensor& where, const Shape& x_shape,
                                         const PoolGeometry& geometry);
/// Mean of each window; padding does not count.
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, const PoolGeometry& geometry);
[[nodiscard]] Tensor avg_pool2d_backward(const Tensor& grad, const Shape& x_shape, const PoolGeometry& geometry);

/// Shape of y. Sizes may come out below 1 where the window exceeds the padded input.
[[nodiscard]] Shape pool2d_shape(const Shape& x, const PoolGeometry& geometry);

}  // namespace infeed::kernels
