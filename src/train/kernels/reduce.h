#pragma once
/// Sums and extremes, without recording. Reduced dimensions (in range, distinct) become size 1.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// Floats accumulate in double or in short partial sums; the order, so the result, does not depend on the number of
/// threads. float32, float64 and int64 give their own dtype; float16 and bfloat16 float32; others int64.
[[nodiscard]] Tensor sum_keepdim(const Tensor& x, const Dims& dims);

enum class ReduceOp : std::uint8_t { kProd, kMax, kMin, kAny, kAll };
/// Stored as `dtype`. NaN is extreme.
[[nodiscard]] Tensor reduce_keepdim(ReduceOp op, const Tensor& x, const Dims& dims, DType dtype);

/// int64 index of the first extreme element along `dim`, kept as size 1; the dimension must have elements.
[[nodiscard]] Tensor arg_extreme(const Tensor& x, int dim, bool largest);

/// Running sums along `dim`, in dtype of `out`.
void cumsum(const Tensor& out, const Tensor& x, int dim);

}  // namespace infeed::kernels
