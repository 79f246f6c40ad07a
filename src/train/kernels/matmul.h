#pragma once
/// Matrix products by oneDNN.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// float32 [.., m, k] x [.., k, n] of equal numbers of dimensions (2 or more) whose leading ones broadcast. Transposed
/// and narrowed matrices are read in place. `bias`, [n] or undefined, is added to every row; then `relu` clips at 0.
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b, const Tensor& bias = {}, bool relu = false);

}  // namespace infeed::kernels
