#pragma once
/// float16 (IEEE binary16) and bfloat16 to and from float, round to nearest even. Bits travel as uint16.
///
/// A file compiled with -mf16c gets the one-instruction float16 forms; results are the same bit for bit, NaN payloads
/// included (a signalling NaN comes out quiet). Always inlined: files of both kinds may meet in one program.

#include <bit>
#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace infeed {

/// The portable form, which the tests hold against the fast one.
[[nodiscard]] constexpr float float16_to_float_portable(std::uint16_t half) noexcept {
  const std::uint32_t sign = (half & 0x8000U) << 16;
  const std::uint32_t rest = half & 0x7FFFU;
  if (rest >= 0x7C00U) {  // infinity, NaN (made quiet)
    const std::uint32_t quiet = rest > 0x7C00U ? 0x00400000U : 0U;
    return std::bit_cast<float>(sign | 0x7F800000U | ((rest & 0x3FFU) << 13) | quiet);
  }
  if (rest >= 0x0400U) return std::bit_cast<float>(sign | ((rest << 13) + (112U << 23)));  // rebias 15 -> 127
  const float magnitude = static_cast<float>(rest) * 0x1p-24F;                             // zero, subnormal: exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

/// The portable form, which the tests hold against the fast one.
[[nodiscard]] constexpr std::uint16_t float_to_float16_portable(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t rest = bits & 0x7FFFFFFFU;
  if (rest > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U | ((rest >> 13) & 0x3FFU));
  if (rest >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);  // 65520 and above
  if (rest < 0x38800000U) {  // below 2^-14: adding 0.5 puts the float's own rounding at the half's last bit
    const float shifted = std::bit_cast<float>(rest) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U));
  }
  const std::uint32_t rounded = rest + 0xFFFU + ((rest >> 13) & 1U);  // may carry into the exponent, rightly
  return static_cast<std::uint16_t>(sign | ((rounded - (112U << 23)) >> 13));
}

[[nodiscard, gnu::always_inline]] inline float float16_to_float(std::uint16_t half) noexcept {
#ifdef __F16C__
  return _cvtsh_ss(half);
#else
  return float16_to_float_portable(half);
#endif
}

[[nodiscard, gnu::always_inline]] inline std::uint16_t float_to_float16(float value) noexcept {
#ifdef __F16C__
  return static_cast<std::uint16_t>(_cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT));
#else
  return float_to_float16_portable(value);
#endif
}

[[nodiscard]] constexpr float bfloat16_to_float(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

[[nodiscard]] constexpr std::uint16_t float_to_bfloat16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return static_cast<std::uint16_t>((bits >> 16) | 0x40U);  // NaN stays NaN
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

}  // namespace infeed
