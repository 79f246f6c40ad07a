#pragma once
/// The inner loops of the fused pass, one set for each CpuLevel. All sets give equal bits.
///
/// An output row goes three steps, all in the first-level cache:
///
///     source rows, RGBX bytes --vertical--> R, G, B as int16, 7 fraction bits --horizontal--> R, G, B as int32
///     --emit--> row
///
/// From planes as a JPEG codes them, Y, Cb and Cr go the same way one by one, with chroma's own taps; colour joins them:
///
///     Y rows --vertical_plane--> int16 --horizontal[1]--> Y as int32
///     Cb, Cr rows --vertical_plane, less 128--> int16 --horizontal[2]--> Cb, Cr as int32
///     --colour--> R, G, B as int32 --emit--> row
///
/// The files of the higher levels are compiled for processors that others lack, so they call no shared inline function
/// that the linker could take from them: pointers and intrinsics only.
///
/// Integer sums are exact in any order; the floats of emit are one multiplication and one addition, never fused.

#include <cstddef>
#include <cstdint>

#include "transform/taps.h"

namespace infeed {

inline constexpr int kPlaneBits = 7;     ///< fraction bits between the passes: 255 << 7 fills an int16
inline constexpr int kPixelBlock = 16;   ///< kernels may read and write whole blocks of this many pixels
inline constexpr int kPlaneSlack = 128;  ///< int16 behind a plane that kernels may read

/// Three rows of one value a pixel, `stride` elements apart.
template <typename T>
struct Planes {
  T* data = nullptr;
  std::ptrdiff_t stride = 0;
  [[nodiscard, gnu::always_inline]] T* row(int channel) const noexcept { return data + channel * stride; }
};

/// From int32 to values: float = sum * mul[c] + add[c]; uint8 = sum >> shift, rounded.
struct Values {
  float mul[3] = {}, add[3] = {};
  int shift = 0;
};

/// Where an output row goes. CHW: rows of three planes, `plane_bytes` apart; HWC: one row, plane_bytes unused.
struct RowTarget {
  std::byte* data = nullptr;
  std::ptrdiff_t plane_bytes = 0;
  int width = 0;
  bool stream =
      false;  ///< CHW only: all rows aligned to 64 bytes and the width a multiple of 64 bytes: bypass the cache
};

/// A sum of `taps` consecutive source rows.
struct RowTaps {
  const std::uint8_t* pixels = nullptr;  ///< first pixel of the first row; 64 bytes are readable behind each row
  std::ptrdiff_t stride = 0;             ///< bytes
  const std::int16_t* weights = nullptr;
  int taps = 0;
  int shift = 0;
  int width = 0;  ///< pixels
};

/// `table`'s taps on as many channels as the function's place in Kernels::horizontal says.
using Horizontal = void (*)(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out);

/// Y, Cb, Cr to R, G, B with kColourBits fraction bits, limited to 0 .. 255: ITU-R BT.601 in integers.
struct ColourRow {
  int width = 0;
  int luma_drop = 0;    ///< fraction bits of Y beyond kColourBits
  int chroma_drop = 0;  ///< fraction bits of Cb and Cr beyond kPlaneBits
};
inline constexpr int kColourBits = 21;
/// Factors, with 14 fraction bits.
inline constexpr int kCrToR = 22970, kCbToG = -5638, kCrToG = -11700, kCbToB = 29032;
inline constexpr int kMaxColour = 255 << kColourBits;

using EmitRow = void (*)(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target);

/// Formats a row can be emitted in, indices of Kernels::emit.
enum EmitFormat { kEmitUInt8, kEmitFloat16, kEmitBFloat16, kEmitFloat32, kNumEmitFormats };

struct Kernels {
  void (*vertical)(const RowTaps& rows, Planes<std::int16_t> out);
  /// The same of one plane's rows, a byte a pixel; `offset` is added to each sum.
  void (*vertical_plane)(const RowTaps& rows, std::int32_t offset, std::int16_t* out);
  TapTable::Grouping grouping = TapTable::Grouping::kNone;  ///< that `horizontal` uses
  Horizontal horizontal[4];                                 ///< by the number of channels, 1 to 3
  /// In place: rows 0, 1, 2 hold Y, Cb, Cr before and R, G, B after.
  void (*colour)(const ColourRow& row, Planes<std::int32_t> sums);
  /// Separates pixels without resampling: sums with no fraction bits. `flip`: last pixel first.
  void (*split)(const std::uint8_t* pixels, int width, bool flip, Planes<std::int32_t> out);
  EmitRow emit_chw[kNumEmitFormats];
  EmitRow emit_hwc[kNumEmitFormats];
  /// Orders streaming stores before what follows.
  void (*fence)();
};

[[nodiscard]] const Kernels* kernels_portable() noexcept;
[[nodiscard]] const Kernels* kernels_neon() noexcept;    ///< null where the build is for another processor
[[nodiscard]] const Kernels* kernels_avx2() noexcept;    ///< null where the processor or the build lacks it
[[nodiscard]] const Kernels* kernels_avx512() noexcept;  ///< null where the processor or the build lacks it

/// `horizontal` for any number of taps, in double precision: TapTable::exact, sums with table.shift fraction bits.
void horizontal_exact(const TapTable& table, int channels, Planes<const std::int16_t> in, Planes<std::int32_t> out);

}  // namespace infeed
