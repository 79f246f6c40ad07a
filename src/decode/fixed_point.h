#pragma once
/// The constants of libjpeg's integer arithmetic.

#include <cstdint>

namespace infeed {

/// `x`, not negative, rounded to `bits` fraction bits.
constexpr std::int32_t fixed_point(double x, int bits) {
  return static_cast<std::int32_t>(x * (1 << bits) + 0.5);  // NOLINT(bugprone-incorrect-roundings): of constants
}

}  // namespace infeed
