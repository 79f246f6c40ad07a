#pragma once
/// Differentiable arithmetic. Shapes broadcast as in PyTorch; both sides must have one dtype (use Tensor::to).

#include <cstdint>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

// Elementwise: float32, float64, int32, int64 (division and functions: floats only). A dense input's memory format is
// kept.
[[nodiscard]] INFEED_API Tensor add(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor sub(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor mul(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor div(const Tensor& a, const Tensor& b);
/// x * scale + shift.
[[nodiscard]] INFEED_API Tensor affine(const Tensor& x, double scale, double shift);
[[nodiscard]] INFEED_API Tensor relu(const Tensor& x);
[[nodiscard]] INFEED_API Tensor exp(const Tensor& x);
[[nodiscard]] INFEED_API Tensor log(const Tensor& x);
[[nodiscard]] INFEED_API Tensor reciprocal(const Tensor& x);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator+(const Tensor& a, double b) { return affine(a, 1.0, b); }
inline Tensor operator-(const Tensor& a, double b) { return affine(a, 1.0, -b); }
inline Tensor operator*(const Tensor& a, double b) { return affine(a, b, 0.0); }
inline Tensor operator/(const Tensor& a, double b) { return affine(a, 1.0 / b, 0.0); }
inline Tensor operator+(double a, const Tensor& b) { return affine(b, 1.0, a); }
inline Tensor operator-(double a, const Tensor& b) { return affine(b, -1.0, a); }
inline Tensor operator*(double a, const Tensor& b) { return affine(b, a, 0.0); }
inline Tensor operator/(double a, const Tensor& b) { return affine(reciprocal(b), a, 0.0); }
inline Tensor operator-(const Tensor& a) { return affine(a, -1.0, 0.0); }

// Reductions. Integers and bool sum to int64.
[[nodiscard]] INFEED_API Tensor sum(const Tensor& x);
[[nodiscard]] INFEED_API Tensor sum(const Tensor& x, const Dims& dims, bool keepdim = false);
[[nodiscard]] INFEED_API Tensor mean(const Tensor& x);
[[nodiscard]] INFEED_API Tensor mean(const Tensor& x, const Dims& dims, bool keepdim = false);
/// Largest element, []. The gradient goes to the first of equal ones.
[[nodiscard]] INFEED_API Tensor max(const Tensor& x);
/// int64 index of the first largest element along `dim`; not differentiable.
[[nodiscard]] INFEED_API Tensor argmax(const Tensor& x, int dim);
/// Sums the dimensions away along which `shape` was broadcast to x's.
[[nodiscard]] INFEED_API Tensor sum_to(const Tensor& x, const Shape& shape);

// Comparisons: bool, not differentiable.
[[nodiscard]] INFEED_API Tensor eq(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor lt(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor gt(const Tensor& a, const Tensor& b);

/// Matrix product, float32: [.., m, k] x [.., k, n], leading dimensions broadcast; one-dimensional sides as in PyTorch.
[[nodiscard]] INFEED_API Tensor matmul(const Tensor& a, const Tensor& b);

}  // namespace infeed
