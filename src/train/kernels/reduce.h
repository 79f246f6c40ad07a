#pragma once
/// Sums and extremes, without recording.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// Sum over `dims` (already in range, distinct), which become size 1. Floats accumulate in double or in short partial
/// sums; the order, so the result, does not depend on the number of threads.
[[nodiscard]] Tensor sum_keepdim(const Tensor& x, const Dims& dims);

/// Position of the first largest element, in C order. x must have elements. NaN counts as largest.
[[nodiscard]] std::int64_t argmax_all(const Tensor& x);

/// int64 index of the first largest element along `dim`, which is dropped.
[[nodiscard]] Tensor argmax(const Tensor& x, int dim);

}  // namespace infeed::kernels
