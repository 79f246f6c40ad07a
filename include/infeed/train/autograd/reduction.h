#pragma once
/// Differentiable reductions. No dims means all of them. Sums of float16 and bfloat16 are taken in float32.

#include <optional>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// The extreme values along a dimension, and where they are (int64, the first of equal ones; NaN is extreme).
struct ValuesAndIndices {
  Tensor values;
  Tensor indices;
};

[[nodiscard]] INFEED_API Tensor sum(const Tensor& x,
                                    std::optional<DType> dtype = {});  ///< g everywhere; integers: int64
[[nodiscard]] INFEED_API Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false,
                                    std::optional<DType> dtype = {});
[[nodiscard]] INFEED_API Tensor mean(const Tensor& x, std::optional<DType> dtype = {});  ///< g / n everywhere
[[nodiscard]] INFEED_API Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false,
                                     std::optional<DType> dtype = {});
/// g times the product of the others, also where there are zeros.
[[nodiscard]] INFEED_API Tensor prod(const Tensor& x);
[[nodiscard]] INFEED_API Tensor prod(const Tensor& x, int dim, bool keepdim = false);
/// Sum of squared differences from the mean over (n - correction): 2 g (x - mean) / (n - correction).
[[nodiscard]] INFEED_API Tensor var(const Tensor& x, const Dims& dims = {}, double correction = 1.0,
                                    bool keepdim = false);
[[nodiscard]] INFEED_API Tensor std(const Tensor& x, const Dims& dims = {}, double correction = 1.0,
                                    bool keepdim = false);
/// log(sum(exp(x))), without overflow: g exp(x - y).
[[nodiscard]] INFEED_API Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim = false);
/// (sum |x|^p)^(1/p); p may be 0 (count), 1, 2, infinity: g x |x|^(p-2) / y^(p-1), 0 where y is.
[[nodiscard]] INFEED_API Tensor norm(const Tensor& x, double p = 2.0, const Dims& dims = {}, bool keepdim = false);

/// Largest or smallest element: g shared by the equal ones.
[[nodiscard]] INFEED_API Tensor max(const Tensor& x);
[[nodiscard]] INFEED_API Tensor min(const Tensor& x);
[[nodiscard]] INFEED_API Tensor amax(const Tensor& x, const Dims& dims, bool keepdim = false);
[[nodiscard]] INFEED_API Tensor amin(const Tensor& x, const Dims& dims, bool keepdim = false);
/// Along one dimension: g to the one at the index.
[[nodiscard]] INFEED_API ValuesAndIndices max(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] INFEED_API ValuesAndIndices min(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] INFEED_API Tensor argmax(const Tensor& x, std::optional<int> dim = {}, bool keepdim = false);
[[nodiscard]] INFEED_API Tensor argmin(const Tensor& x, std::optional<int> dim = {}, bool keepdim = false);

// bool, not differentiable.
[[nodiscard]] INFEED_API Tensor any(const Tensor& x);
[[nodiscard]] INFEED_API Tensor any(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] INFEED_API Tensor all(const Tensor& x);
[[nodiscard]] INFEED_API Tensor all(const Tensor& x, int dim, bool keepdim = false);
[[nodiscard]] INFEED_API Tensor count_nonzero(const Tensor& x);

/// Sums the dimensions away along which `shape` was broadcast to x's.
[[nodiscard]] INFEED_API Tensor sum_to(const Tensor& x, const Shape& shape);

}  // namespace infeed
