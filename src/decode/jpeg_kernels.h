#pragma once
/// The stages behind the entropy decoder, as libjpeg-turbo computes them: inverse DCT, chroma upsampling, colour.

#include "decode/idct.h"

namespace infeed {

/// Rows may be read up to this many samples beyond what is asked, and written so in `out`.
inline constexpr int kKernelSlack = 64;

struct JpegKernels {
  IdctPairFn idct_pair;
  /// Doubles a row: out[2 i], out[2 i + 1] from in[i - 1 .. i + 1], for i in [0, count); 3/4 of the nearer sample, 1/4
  /// of the next. in[-1] and in[count] exist.
  void (*double_row)(const std::uint8_t* in, int count, std::uint8_t* out) noexcept;
  /// The same in both directions: `near` is the sample row that covers the output row, `far` the one beside it.
  void (*double_both)(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) noexcept;
  /// Y, Cb, Cr to R, G, B, 255 (JFIF 1.02: ITU-R BT.601, full range), 16 fraction bits.
  void (*colour)(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int count,
                 std::uint8_t* out) noexcept;
};

/// Those of cpu_level().
[[nodiscard]] const JpegKernels& jpeg_kernels();

[[nodiscard]] const JpegKernels& jpeg_kernels_portable() noexcept;
/// Null where the build or the processor has no AVX2.
[[nodiscard]] const JpegKernels* jpeg_kernels_avx2() noexcept;

}  // namespace infeed
