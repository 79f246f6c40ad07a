#pragma once
/// Differentiable arithmetic, element by element. Shapes broadcast; dtypes promote as PyTorch's result_type says;
/// numbers convert to operands. A dense input's memory format is kept. g: the gradient that arrives, y: the result.

#include <optional>
#include <string_view>
#include <type_traits>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// The dtype of `a op b`: tensors with dimensions outweigh those without, and both outweigh numbers, within a category.
[[nodiscard]] INFEED_API DType result_type(const Tensor& a, const Tensor& b);

// Arithmetic. Gradients are summed over broadcast dimensions.
[[nodiscard]] INFEED_API Tensor add(const Tensor& a, const Tensor& b,
                                    const Scalar& alpha = 1);  ///< a + alpha b: g, alpha g
[[nodiscard]] INFEED_API Tensor sub(const Tensor& a, const Tensor& b,
                                    const Scalar& alpha = 1);           ///< a - alpha b: g, -alpha g
[[nodiscard]] INFEED_API Tensor mul(const Tensor& a, const Tensor& b);  ///< g b, g a
[[nodiscard]] INFEED_API Tensor div(const Tensor& a, const Tensor& b);  ///< integers become floats: g / b, -g a / b^2
/// Rounded towards -infinity ("floor") or 0 ("trunc"); no gradient.
[[nodiscard]] INFEED_API Tensor div(const Tensor& a, const Tensor& b, std::string_view rounding_mode);
[[nodiscard]] INFEED_API Tensor floor_divide(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor remainder(const Tensor& a, const Tensor& b);  ///< sign of b: g, -g floor(a / b)
[[nodiscard]] INFEED_API Tensor fmod(const Tensor& a, const Tensor& b);       ///< sign of a: g, -g trunc(a / b)
[[nodiscard]] INFEED_API Tensor pow(const Tensor& a, const Tensor& b);        ///< g b a^(b-1), g y log a
[[nodiscard]] INFEED_API Tensor maximum(const Tensor& a, const Tensor& b);    ///< g to the larger, halves to equal ones
[[nodiscard]] INFEED_API Tensor minimum(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor atan2(const Tensor& a, const Tensor& b);  ///< g b / (a^2 + b^2), -g a / (a^2 + b^2)
[[nodiscard]] INFEED_API Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor addcmul(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value = 1);
[[nodiscard]] INFEED_API Tensor addcdiv(const Tensor& x, const Tensor& a, const Tensor& b, const Scalar& value = 1);
[[nodiscard]] INFEED_API Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight);  ///< a + weight (b - a)
/// x scale + shift, in one pass: g scale.
[[nodiscard]] INFEED_API Tensor affine(const Tensor& x, double scale, double shift);

// Functions. Integers become floats where the result is real.
[[nodiscard]] INFEED_API Tensor neg(const Tensor& x);         ///< -g
[[nodiscard]] INFEED_API Tensor abs(const Tensor& x);         ///< g sign(x)
[[nodiscard]] INFEED_API Tensor sign(const Tensor& x);        ///< 0
[[nodiscard]] INFEED_API Tensor square(const Tensor& x);      ///< 2 g x
[[nodiscard]] INFEED_API Tensor reciprocal(const Tensor& x);  ///< -g y^2
[[nodiscard]] INFEED_API Tensor sqrt(const Tensor& x);        ///< g / 2y
[[nodiscard]] INFEED_API Tensor rsqrt(const Tensor& x);       ///< -g y^3 / 2
[[nodiscard]] INFEED_API Tensor exp(const Tensor& x);         ///< g y
[[nodiscard]] INFEED_API Tensor expm1(const Tensor& x);       ///< g (y + 1)
[[nodiscard]] INFEED_API Tensor log(const Tensor& x);         ///< g / x
[[nodiscard]] INFEED_API Tensor log2(const Tensor& x);        ///< g / (x ln 2)
[[nodiscard]] INFEED_API Tensor log10(const Tensor& x);       ///< g / (x ln 10)
[[nodiscard]] INFEED_API Tensor log1p(const Tensor& x);       ///< g / (x + 1)
[[nodiscard]] INFEED_API Tensor sin(const Tensor& x);         ///< g cos x
[[nodiscard]] INFEED_API Tensor cos(const Tensor& x);         ///< -g sin x
[[nodiscard]] INFEED_API Tensor tan(const Tensor& x);         ///< g (1 + y^2)
[[nodiscard]] INFEED_API Tensor tanh(const Tensor& x);        ///< g (1 - y^2)
[[nodiscard]] INFEED_API Tensor sigmoid(const Tensor& x);     ///< g y (1 - y)
[[nodiscard]] INFEED_API Tensor erf(const Tensor& x);         ///< 2 g exp(-x^2) / sqrt(pi)
[[nodiscard]] INFEED_API Tensor floor(const Tensor& x);       ///< 0, as the next three
[[nodiscard]] INFEED_API Tensor ceil(const Tensor& x);
[[nodiscard]] INFEED_API Tensor round(const Tensor& x);  ///< halves to even
[[nodiscard]] INFEED_API Tensor trunc(const Tensor& x);
/// min(max(x, low), high): g inside the bounds, ends included.
[[nodiscard]] INFEED_API Tensor clamp(const Tensor& x, std::optional<Scalar> low, std::optional<Scalar> high);
[[nodiscard]] INFEED_API Tensor clamp(const Tensor& x, const Tensor& low,
                                      const Tensor& high);  ///< either may be undefined
template <class Low, class High>
[[nodiscard]] Tensor clamp(const Tensor& x, Low low,
                           High high) requires std::is_arithmetic_v<Low> && std::is_arithmetic_v<High> {
  return clamp(x, std::optional<Scalar>(low), std::optional<Scalar>(high));
}

// Activations.
[[nodiscard]] INFEED_API Tensor relu(const Tensor& x);  ///< g where y > 0
[[nodiscard]] INFEED_API Tensor hardtanh(const Tensor& x, double low = -1.0,
                                         double high = 1.0);  ///< clamp; g strictly between the bounds
[[nodiscard]] INFEED_API Tensor leaky_relu(const Tensor& x, double slope = 0.01);  ///< g, or slope g where x <= 0
[[nodiscard]] INFEED_API Tensor elu(const Tensor& x, double alpha = 1.0);          ///< g, or g (y + alpha) where x <= 0
enum class GeluKind : std::uint8_t { kErf, kTanh };
[[nodiscard]] INFEED_API Tensor gelu(const Tensor& x, GeluKind kind = GeluKind::kErf);  ///< g (Phi(x) + x phi(x))
[[nodiscard]] INFEED_API Tensor silu(const Tensor& x);  ///< g s (1 + x (1 - s)), s = sigmoid(x)
[[nodiscard]] INFEED_API Tensor softplus(const Tensor& x, double beta = 1.0,
                                         double threshold = 20.0);  ///< g sigmoid(beta x)
[[nodiscard]] INFEED_API Tensor logsigmoid(const Tensor& x);        ///< g sigmoid(-x)

// Comparisons and logic: bool, not differentiable. Bitwise: integers and bool.
[[nodiscard]] INFEED_API Tensor eq(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor ne(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor lt(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor le(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor gt(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor ge(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor logical_not(const Tensor& x);
[[nodiscard]] INFEED_API Tensor logical_and(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor logical_or(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor logical_xor(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor bitwise_not(const Tensor& x);
[[nodiscard]] INFEED_API Tensor bitwise_and(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor bitwise_or(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor bitwise_xor(const Tensor& a, const Tensor& b);
[[nodiscard]] INFEED_API Tensor isnan(const Tensor& x);
[[nodiscard]] INFEED_API Tensor isinf(const Tensor& x);
[[nodiscard]] INFEED_API Tensor isfinite(const Tensor& x);
[[nodiscard]] INFEED_API bool equal(const Tensor& a, const Tensor& b);  ///< same shape and values
[[nodiscard]] INFEED_API Tensor isclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                                        bool equal_nan = false);
[[nodiscard]] INFEED_API bool allclose(const Tensor& a, const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                                       bool equal_nan = false);

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return div(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }

}  // namespace infeed
