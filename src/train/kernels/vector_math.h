#pragma once
/// exp, log, tanh, erf, sigmoid and the normal distribution for floats, without branches and calls: a loop over them
/// becomes vector instructions, whichever the CPU has. Within 4 ulp of the exact value (sin and cos: glibc's, too).

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

// Put before a function with a loop: it is compiled for AVX2 and AVX-512, too, and the program picks one when it starts.
// Not under sanitizers, which are not ready by then.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define INFEED_CLONES [[gnu::target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")]]
#else
#define INFEED_CLONES
#endif
// What such a loop calls must be compiled as part of it.
#define INFEED_INLINE [[gnu::always_inline]] inline

namespace infeed::kernels::fast {

// glibc has vector forms of these under other names; the attribute tells the compiler, which -ffast-math would do at
// the price of NaN.
extern "C" {
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define INFEED_SIMD __attribute__((simd("notinbranch"), const))
#else
#define INFEED_SIMD
#endif
INFEED_SIMD float sinf(float) noexcept;
INFEED_SIMD float cosf(float) noexcept;
#undef INFEED_SIMD
}

/// c[0] + c[1] x + ...
template <std::size_t N>
INFEED_INLINE float polynomial(float x, const float (&c)[N]) noexcept {
  float sum = c[N - 1];
  for (std::size_t i = N - 1; i-- > 0;) sum = sum * x + c[i];
  return sum;
}

/// e^(x + low) = p 2^n with p around 1. |x| < 2^20; low: what x lost by rounding.
struct Power {
  float p;
  std::int32_t n;
};
INFEED_INLINE Power power_of_e(float x, float low) noexcept {
  constexpr float kRounder = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  const float shifted = x * 1.44269504f + kRounder;
  const float n = shifted - kRounder;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f + low;  // ln 2 in two parts, the first exact times n
  const float p = polynomial(r, {1.0f, 1.0f, 0.5f, 1.66665182e-1f, 4.16662060e-2f, 8.36888794e-3f, 1.39504857e-3f});
  return {p, std::bit_cast<std::int32_t>(shifted) - std::bit_cast<std::int32_t>(kRounder)};
}
INFEED_INLINE float power_of_2(std::int32_t n) noexcept { return std::bit_cast<float>((n + 127) << 23); }

INFEED_INLINE float exp(float x) noexcept {
  float clamped = x > 89.0f ? 89.0f : x;
  clamped = clamped < -104.0f ? -104.0f : clamped;
  const Power e = power_of_e(clamped, 0.0f);
  const std::int32_t half = e.n >> 1;  // in two steps: the result may be subnormal or infinite
  return e.p * power_of_2(half) * power_of_2(e.n - half);
}

/// The same where it is known that neither x nor the result are extreme: |x| < 87.
INFEED_INLINE float exp_within(float x, float low = 0.0f) noexcept {
  const Power e = power_of_e(x, low);
  return std::bit_cast<float>(std::bit_cast<std::int32_t>(e.p) + (e.n << 23));
}

/// For x <= 0: 0 instead of a subnormal result.
INFEED_INLINE float exp_of_negative(float x) noexcept {
  const float y = exp_within(x < -87.0f ? -87.0f : x);
  return x < -87.0f ? 0.0f : y;
}

INFEED_INLINE float log(float x) noexcept {
  const bool tiny = x < std::numeric_limits<float>::min();
  const auto bits = std::bit_cast<std::int32_t>(tiny ? x * 0x1p23f : x);
  const std::int32_t n = (bits - 0x3f3504f3) >> 23;  // x = m 2^n with m in [sqrt(1/2), sqrt(2))
  const float f = std::bit_cast<float>(bits - (n << 23)) - 1.0f;
  const float exponent = static_cast<float>(n - (tiny ? 23 : 0));
  const float rest = polynomial(f, {3.33333314e-1f, -2.50008225e-1f, 2.00012267e-1f, -1.66233569e-1f, 1.42017618e-1f,
                                    -1.31601945e-1f, 1.27615497e-1f, -7.63442963e-2f});
  const float square = f * f;
  const float y = f - (0.5f * square - (square * f * rest - exponent * 2.12194440e-4f)) + exponent * 0.693359375f;
  const float edge = x == 0.0f ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  const float checked = x > 0.0f ? y : edge;
  return x < std::numeric_limits<float>::infinity() ? checked : x;
}

INFEED_INLINE float sigmoid(float x) noexcept { return 1.0f / (1.0f + exp(-x)); }

INFEED_INLINE float tanh(float x) noexcept {
  const float t = std::fabs(x);
  const float square = x * x;
  const float small = x + x * square *
                              polynomial(square, {-3.33333254e-1f, 1.33329645e-1f, -5.39188422e-2f, 2.15609502e-2f,
                                                  -7.86186289e-3f, 1.87903876e-3f});
  const float large = 1.0f - 2.0f / (1.0f + exp_within(t > 10.0f ? 20.0f : 2.0f * t));
  return t < 0.7f ? small : std::copysign(large, x);
}

INFEED_INLINE float erf(float x) noexcept {
  const float t = std::fabs(x);
  const float square = x * x;
  const float small = x * polynomial(square, {1.12837911e+0f, -3.76126260e-1f, 1.12835854e-1f, -2.68538110e-2f,
                                              5.18832775e-3f, -8.01019254e-4f, 7.85385782e-5f});
  const float capped = t > 4.0f ? 4.0f : t;  // -log(erfc(t)) / t is almost a line
  const float exponent = capped * polynomial(capped, {1.12849987e+0f, 6.35767102e-1f, 1.05197698e-1f, -2.28489004e-2f,
                                                      3.20216548e-3f, -2.12434941e-4f});
  const float large = 1.0f - exp_within(-exponent);
  return t < 1.0f ? small : std::copysign(large, x);
}

/// Phi(x) and phi(x) of the standard normal distribution; Phi within 2 ulp of 1, and within 9 of itself where tiny.
struct Normal {
  float cdf;
  float density;
};
INFEED_INLINE Normal normal(float x) noexcept {
  constexpr float kFar = 13.0f;  // beyond, 1e-38
  const float t = std::fabs(x) > kFar ? kFar : std::fabs(x);
  const float high = std::bit_cast<float>(std::bit_cast<std::uint32_t>(t) & 0xfffff000U);  // its square is exact
  const float density = 0.398942280f * exp_within(-0.5f * high * high, -0.5f * (t - high) * (t + high));
  const float u = 1.0f / (1.0f + 0.3f * t);  // (1 - Phi(t)) / phi(t) / u is a polynomial in u, nearly
  const float ratio =
      u * polynomial(u - 0.5f, {5.56397796e-1f, 8.25078964e-1f, 8.67803454e-1f, 5.56699753e-1f, 7.23076016e-2f,
                                -1.94644332e-1f, -8.33508596e-2f, 8.58264789e-2f, 8.67482834e-3f});
  const float tail = std::fabs(x) > kFar ? 0.0f : density * ratio;
  return {x < 0.0f ? tail : 1.0f - tail, std::fabs(x) > kFar ? 0.0f : density};
}

INFEED_INLINE float sin(float x) noexcept { return fast::sinf(x); }
INFEED_INLINE float cos(float x) noexcept { return fast::cosf(x); }

inline double exp(double x) noexcept { return std::exp(x); }
inline double log(double x) noexcept { return std::log(x); }
inline double sin(double x) noexcept { return std::sin(x); }
inline double cos(double x) noexcept { return std::cos(x); }
inline double tanh(double x) noexcept { return std::tanh(x); }
inline double erf(double x) noexcept { return std::erf(x); }
inline double sigmoid(double x) noexcept { return 1.0 / (1.0 + std::exp(-x)); }

struct NormalDouble {
  double cdf;
  double density;
};
inline NormalDouble normal(double x) noexcept {
  return {0.5 * std::erfc(-x * 0.70710678118654752), 0.39894228040143268 * std::exp(-0.5 * x * x)};
}

}  // namespace infeed::kernels::fast
