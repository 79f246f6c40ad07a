#pragma once
/// New tensors for the results of elementwise operations.

#include <optional>

#include "infeed/train/tensor/tensor.h"
#include "train/kernels/elementwise.h"
#include "train/tensor/geometry.h"
#include "train/tensor/impl.h"

namespace infeed {

/// The device of both, where a CPU tensor without dimensions fits any. Throws RuntimeError.
[[nodiscard]] DeviceId common_device(const Tensor& a, const Tensor& b);

/// Shape by broadcasting; layout of whichever operand already has that shape.
[[nodiscard]] Tensor empty_result(const Tensor& a, const Tensor& b, DType dtype);

/// `dtype`, or the default one instead of an integer.
[[nodiscard]] DType real_dtype(DType dtype);

[[nodiscard]] Tensor unary_result(kernels::UnaryOp op, const Tensor& x, DType dtype, double a = 0.0, double b = 0.0);

/// Computed as `compute`, stored as `stored` or the same.
[[nodiscard]] Tensor binary_result(kernels::BinaryOp op, const Tensor& a, const Tensor& b, DType compute,
                                   std::optional<DType> stored = {}, double alpha = 1.0);

/// The same in x's dtype, or the default one instead of an integer.
[[nodiscard]] Tensor real_unary(kernels::UnaryOp op, const Tensor& x, double a = 0.0, double b = 0.0);
[[nodiscard]] Tensor real_binary(kernels::BinaryOp op, const Tensor& a, const Tensor& b);
/// In the operands' common dtype.
[[nodiscard]] Tensor binary_of(kernels::BinaryOp op, const Tensor& a, const Tensor& b);

[[nodiscard]] inline bool is_half(DType dtype) noexcept {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}
/// float16 and bfloat16 as float32: for formulas of several operations that shall round once.
[[nodiscard]] Tensor widened(const Tensor& x);

/// g v and g / v for backward: 0 where g is 0, so that what a mask left out cannot make NaN of it. Under create_graph
/// the plain operations.
[[nodiscard]] Tensor times(const Tensor& g, const Tensor& v);
[[nodiscard]] Tensor over(const Tensor& g, const Tensor& v);

}  // namespace infeed
