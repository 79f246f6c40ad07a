#pragma once
/// Picking and placing single elements. Indices are int64 (or int32); negative ones only where said.

#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// out[i][j] = x[index[i][j]][j] for dim 0, and so on: g is added where the elements came from.
[[nodiscard]] INFEED_API Tensor gather(const Tensor& x, int dim, const Tensor& index);
/// x with x[index[i][j]][j] = source[i][j]: g cleared there; g gathered.
[[nodiscard]] INFEED_API Tensor scatter(const Tensor& x, int dim, const Tensor& index, const Tensor& source);
/// The same, adding: g; g gathered.
[[nodiscard]] INFEED_API Tensor scatter_add(const Tensor& x, int dim, const Tensor& index, const Tensor& source);
/// x[:, index] for dim 1: g added back.
[[nodiscard]] INFEED_API Tensor index_select(const Tensor& x, int dim, const Tensor& index);
/// x with source's slices added at `index`.
[[nodiscard]] INFEED_API Tensor index_add(const Tensor& x, int dim, const Tensor& index, const Tensor& source,
                                          const Scalar& alpha = 1);

/// value where `mask` (bool): g elsewhere, the sum of g there.
[[nodiscard]] INFEED_API Tensor masked_fill(const Tensor& x, const Tensor& mask, const Tensor& value);
[[nodiscard]] INFEED_API Tensor masked_select(const Tensor& x, const Tensor& mask);  ///< 1-dimensional
[[nodiscard]] INFEED_API Tensor nonzero(const Tensor& x);                            ///< int64 [count, ndim]

/// x[indices] with one tensor per dimension, undefined ones meaning all of it: a copy. Masks count as their places;
/// negative indices count from the end. g is added back.
[[nodiscard]] INFEED_API Tensor index(const Tensor& x, const std::vector<Tensor>& indices);
/// x with x[indices] = values, or += values.
[[nodiscard]] INFEED_API Tensor index_put(const Tensor& x, const std::vector<Tensor>& indices, const Tensor& values,
                                          bool accumulate = false);

/// int64 [..] of {0, 1}: a new last dimension with 1 at the class. num_classes -1: the largest plus one.
[[nodiscard]] INFEED_API Tensor one_hot(const Tensor& classes, std::int64_t num_classes = -1);

/// Backward of as_strided: g added at its places in a tensor of x's geometry.
[[nodiscard]] INFEED_API Tensor as_strided_backward(const Tensor& g, const Shape& x_shape, const Strides& x_strides,
                                                    const Shape& shape, const Strides& strides, std::int64_t offset);

}  // namespace infeed
