#pragma once
/// Matrix products. float32 and bfloat16 run on oneDNN.

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// [.., m, k] x [.., k, n], leading dimensions broadcast; one-dimensional sides as in PyTorch: g b^T, a^T g.
[[nodiscard]] INFEED_API Tensor matmul(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor mm(const Tensor& a, const Tensor& b);   ///< [m, k] x [k, n]
[[nodiscard]] INFEED_API Tensor bmm(const Tensor& a, const Tensor& b);  ///< [b, m, k] x [b, k, n]
[[nodiscard]] INFEED_API Tensor mv(const Tensor& a, const Tensor& v);   ///< [m, k] x [k]
[[nodiscard]] INFEED_API Tensor dot(const Tensor& a, const Tensor& b);  ///< [k] x [k]
[[nodiscard]] INFEED_API Tensor outer(const Tensor& a, const Tensor& b);
/// beta x + alpha a b
[[nodiscard]] INFEED_API Tensor addmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                                      const Scalar& alpha = 1);
[[nodiscard]] INFEED_API Tensor baddbmm(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& beta = 1,
                                        const Scalar& alpha = 1);

}  // namespace infeed
