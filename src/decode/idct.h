#pragma once
/// The inverse DCT that libjpeg calls islow, bit for bit as its SIMD code computes it: 16-bit products and sums wrap,
/// the first pass saturates. For coefficients that an encoder makes this equals the C code too.
///
/// Source of the flow graph: C. Loeffler, A. Ligtenberg, G. Moschytz, "Practical Fast 1-D DCT Algorithms with 11
/// Multiplications", ICASSP 1989; 13-bit constants, 2 more bits kept between the passes.

#include <array>
#include <cstddef>
#include <cstdint>

#include "decode/fixed_point.h"

namespace infeed {

/// Quantisation steps in rows of 8, as libjpeg multiplies them: modulo 2^16.
using QuantTable = std::array<std::int16_t, 64>;

/// A block on its way to its pixels.
struct IdctJob {
  std::int16_t* coefficients = nullptr;  ///< 64, rows of 8, 64-byte aligned
  const QuantTable* quant = nullptr;
  bool flat = false;  ///< DC alone
  std::uint8_t* out = nullptr;
};

/// Writes 8 x 8 samples of two blocks, rows `stride_a` and `stride_b` bytes apart.
using IdctPairFn = void (*)(const IdctJob& a, std::ptrdiff_t stride_a, const IdctJob& b,
                            std::ptrdiff_t stride_b) noexcept;

/// All 64 samples of a flat block.
void idct_flat(const IdctJob& job, std::ptrdiff_t stride) noexcept;
void idct_portable(const IdctJob& job, std::ptrdiff_t stride) noexcept;
void idct_pair_portable(const IdctJob& a, std::ptrdiff_t stride_a, const IdctJob& b, std::ptrdiff_t stride_b) noexcept;

/// The constants, shared with the SIMD code.
namespace islow {
inline constexpr int kConstBits = 13, kPass1Bits = 2;
constexpr std::int32_t fix(double x) { return fixed_point(x, kConstBits); }
inline constexpr std::int32_t k0_298 = fix(0.298631336), k0_390 = fix(0.390180644), k0_541 = fix(0.541196100),
                              k0_765 = fix(0.765366865), k0_899 = fix(0.899976223), k1_175 = fix(1.175875602),
                              k1_501 = fix(1.501321110), k1_847 = fix(1.847759065), k1_961 = fix(1.961570560),
                              k2_053 = fix(2.053119869), k2_562 = fix(2.562915447), k3_072 = fix(3.072711026);
}  // namespace islow

}  // namespace infeed
