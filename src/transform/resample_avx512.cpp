#include <immintrin.h>

#include <cstring>

#include "base/cpu.h"
#include "transform/resample.h"

namespace infeed {
namespace {

using Byte = std::uint8_t;

// Shuffles of four bytes a pixel that put channel c into the lower, or upper, 16 bits of the pixel's lane.
__m512i channel_shuffle(int c, bool upper) {
  constexpr int kZero = 0x80;
  const int pixel = upper ? (c << 16 | kZero << 24 | kZero << 8 | kZero) : (c | kZero << 8 | kZero << 16 | kZero << 24);
  const int step = upper ? 4 << 16 : 4;
  return _mm512_broadcast_i32x4(_mm_setr_epi32(pixel, pixel + step, pixel + 2 * step, pixel + 3 * step));
}

constexpr __mmask64 kUpperHalves = 0xCCCCCCCCCCCCCCCCULL;

// 16 pixels a step; a pair of rows is one multiply-add of channel pairs (row j, row j + 1).
template <int kPairs>  // 0: any number
void vertical_pairs(const RowTaps& rows, Planes<std::int16_t> out) {
  const int pairs = kPairs > 0 ? kPairs : (rows.taps + 1) / 2;
  const auto drop = static_cast<unsigned>(rows.shift - kPlaneBits);
  const __m128i count = _mm_cvtsi32_si128(static_cast<int>(drop));
  const __m512i half = _mm512_set1_epi32(1 << (drop - 1)), low_byte = _mm512_set1_epi32(0xFF);
  const __m512i lower1 = channel_shuffle(1, false), lower2 = channel_shuffle(2, false);
  const __m512i upper0 = channel_shuffle(0, true), upper1 = channel_shuffle(1, true), upper2 = channel_shuffle(2, true);
  for (int x = 0; x < rows.width; x += 16) {
    __m512i sum0 = half, sum1 = half, sum2 = half;
    const Byte* row = rows.pixels + std::ptrdiff_t{4} * x;
    for (int p = 0; p < pairs; ++p, row += 2 * rows.stride) {
      std::uint32_t both;
      std::memcpy(&both, rows.weights + 2 * p, sizeof both);
      const __m512i weights = _mm512_set1_epi32(static_cast<int>(both));
      const __m512i a = _mm512_loadu_si512(row);
      const __m512i b = _mm512_loadu_si512(2 * p + 1 < rows.taps ? row + rows.stride : row);
      const __m512i a0 = _mm512_and_si512(a, low_byte);
      const __m512i a1 = _mm512_shuffle_epi8(a, lower1), a2 = _mm512_shuffle_epi8(a, lower2);
      sum0 = _mm512_dpwssd_epi32(sum0, _mm512_mask_shuffle_epi8(a0, kUpperHalves, b, upper0), weights);
      sum1 = _mm512_dpwssd_epi32(sum1, _mm512_mask_shuffle_epi8(a1, kUpperHalves, b, upper1), weights);
      sum2 = _mm512_dpwssd_epi32(sum2, _mm512_mask_shuffle_epi8(a2, kUpperHalves, b, upper2), weights);
    }
    const auto store = [&](int c, __m512i sum) {
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.row(c) + x),
                          _mm512_cvtepi32_epi16(_mm512_sra_epi32(sum, count)));
    };
    store(0, sum0);
    store(1, sum1);
    store(2, sum2);
  }
}

void vertical(const RowTaps& rows, Planes<std::int16_t> out) {
  switch ((rows.taps + 1) / 2) {
    case 1: return vertical_pairs<1>(rows, out);
    case 2: return vertical_pairs<2>(rows, out);
    default: return vertical_pairs<0>(rows, out);
  }
}

// 32 samples a step. Unpacking a pair of rows and packing the sums both work within 128 bits: the order is kept.
template <int kPairs>  // 0: any number
void plane_pairs(const RowTaps& rows, std::int32_t offset, std::int16_t* out) {
  const int pairs = kPairs > 0 ? kPairs : (rows.taps + 1) / 2;
  const auto drop = static_cast<unsigned>(rows.shift - kPlaneBits);
  const __m128i count = _mm_cvtsi32_si128(static_cast<int>(drop));
  const __m512i begin = _mm512_set1_epi32((1 << (drop - 1)) + offset);
  const auto words = [](const Byte* at) {
    return _mm512_cvtepu8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)));
  };
  for (int x = 0; x < rows.width; x += 32) {
    __m512i low = begin, high = begin;
    const Byte* row = rows.pixels + x;
    for (int p = 0; p < pairs; ++p, row += 2 * rows.stride) {
      std::uint32_t both;
      std::memcpy(&both, rows.weights + 2 * p, sizeof both);
      const __m512i weights = _mm512_set1_epi32(static_cast<int>(both));
      const __m512i a = words(row), b = words(2 * p + 1 < rows.taps ? row + rows.stride : row);
      low = _mm512_dpwssd_epi32(low, _mm512_unpacklo_epi16(a, b), weights);
      high = _mm512_dpwssd_epi32(high, _mm512_unpackhi_epi16(a, b), weights);
    }
    _mm512_storeu_si512(out + x, _mm512_packs_epi32(_mm512_sra_epi32(low, count), _mm512_sra_epi32(high, count)));
  }
}

void vertical_plane(const RowTaps& rows, std::int32_t offset, std::int16_t* out) {
  switch ((rows.taps + 1) / 2) {
    case 1: return plane_pairs<1>(rows, offset, out);
    case 2: return plane_pairs<2>(rows, offset, out);
    default: return plane_pairs<0>(rows, offset, out);
  }
}

// 16 outputs a step; their pixels lie in one or two registers, from which a permute takes a pair of taps for each.
template <int kChannels, int kRegisters, int kPairs>  // kPairs 0: any number
void horizontal_groups(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const int pairs = kPairs > 0 ? kPairs : table.groups.pairs;
  const __m512i next_pair = _mm512_set1_epi32(0x20002);
  const std::int32_t* base = table.groups.base.data();
  const std::int32_t* indices = table.groups.index.data();
  const std::int16_t* weights = table.groups.weights.data();
  for (int i = 0; i < table.outputs; i += 16, ++base, weights += pairs * 32) {
    __m512i low[kChannels], high[kChannels], sums[kChannels];
    for (int c = 0; c < kChannels; ++c) {
      low[c] = _mm512_loadu_si512(in.row(c) + *base);
      high[c] = kRegisters == 2 ? _mm512_loadu_si512(in.row(c) + *base + 32) : low[c];
      sums[c] = _mm512_setzero_si512();
    }
    __m512i index = _mm512_loadu_si512(indices + i);
    for (int p = 0; p < pairs; ++p) {
      const __m512i weight = _mm512_loadu_si512(weights + p * 32);
      for (int c = 0; c < kChannels; ++c) {
        const __m512i taps = kRegisters == 2 ? _mm512_permutex2var_epi16(low[c], index, high[c])
                                             : _mm512_permutexvar_epi16(index, low[c]);
        sums[c] = _mm512_dpwssd_epi32(sums[c], taps, weight);
      }
      index = _mm512_add_epi16(index, next_pair);
    }
    for (int c = 0; c < kChannels; ++c) _mm512_storeu_si512(out.row(c) + i, sums[c]);
  }
}

// One output a step, for long filters: its taps lie together.
template <int kChannels>
void horizontal_long(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const std::int32_t* start = table.start.data();
  const std::int16_t* weights = table.weights.data();
  for (int i = 0; i < table.outputs; ++i, weights += table.stride) {
    for (int c = 0; c < kChannels; ++c) {
      const std::int16_t* taps = in.row(c) + start[i];
      __m512i sum = _mm512_setzero_si512();
      int j = 0;
      for (; j + 32 <= table.stride; j += 32)
        sum = _mm512_dpwssd_epi32(sum, _mm512_loadu_si512(taps + j), _mm512_loadu_si512(weights + j));
      if (j < table.stride) {
        const auto rest = static_cast<__mmask32>((1U << (table.stride - j)) - 1);
        sum = _mm512_dpwssd_epi32(sum, _mm512_maskz_loadu_epi16(rest, taps + j),
                                  _mm512_maskz_loadu_epi16(rest, weights + j));
      }
      out.row(c)[i] = _mm512_reduce_add_epi32(sum);
    }
  }
}

template <int kChannels>
void horizontal(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const int pairs = table.groups.pairs;
  if (!table.groups.usable) return horizontal_long<kChannels>(table, in, out);
  if (table.groups.half_register) {
    if (pairs == 1) return horizontal_groups<kChannels, 1, 1>(table, in, out);
    if (pairs == 2) return horizontal_groups<kChannels, 1, 2>(table, in, out);
    return horizontal_groups<kChannels, 1, 0>(table, in, out);
  }
  if (pairs == 2) return horizontal_groups<kChannels, 2, 2>(table, in, out);
  if (pairs == 3) return horizontal_groups<kChannels, 2, 3>(table, in, out);
  return horizontal_groups<kChannels, 2, 0>(table, in, out);
}

void split(const Byte* pixels, int width, bool flip, Planes<std::int32_t> out) {
  const __m512i low_byte = _mm512_set1_epi32(0xFF);
  const __m512i reverse = _mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
  for (int x = 0; x < width; x += 16) {
    const int n = width - x < 16 ? width - x : 16;
    const auto mask = static_cast<__mmask16>((1U << n) - 1);
    __m512i v;
    if (!flip) {
      v = _mm512_maskz_loadu_epi32(mask, pixels + std::ptrdiff_t{4} * x);
    } else {  // pixels width - x - 16 .. width - x - 1, those before the row masked away
      const auto tail = static_cast<__mmask16>(0xFFFFU << (16 - n));
      v = _mm512_permutexvar_epi32(reverse,
                                   _mm512_maskz_loadu_epi32(tail, pixels + std::ptrdiff_t{4} * (width - x) - 64));
    }
    _mm512_storeu_si512(out.row(0) + x, _mm512_and_si512(v, low_byte));
    _mm512_storeu_si512(out.row(1) + x, _mm512_and_si512(_mm512_srli_epi32(v, 8), low_byte));
    _mm512_storeu_si512(out.row(2) + x, _mm512_and_si512(_mm512_srli_epi32(v, 16), low_byte));
  }
}

// --- colour -------------------------------------------------------------------------------------------------------

void colour(const ColourRow& row, Planes<std::int32_t> sums) {
  const __m128i luma = _mm_cvtsi32_si128(row.luma_drop), chroma = _mm_cvtsi32_si128(row.chroma_drop);
  const __m512i half = _mm512_set1_epi32(1 << (row.chroma_drop - 1));
  const __m512i zero = _mm512_setzero_si512(), most = _mm512_set1_epi32(kMaxColour);
  const auto factors = [](int cb, int cr) { return _mm512_set1_epi32((cr << 16) | (cb & 0xFFFF)); };
  const __m512i to_r = factors(0, kCrToR), to_g = factors(kCbToG, kCrToG), to_b = factors(kCbToB, 0);
  for (int i = 0; i < row.width; i += 16) {
    const __m512i y = _mm512_sra_epi32(_mm512_loadu_si512(sums.row(0) + i), luma);
    const __m512i cb = _mm512_sra_epi32(_mm512_add_epi32(_mm512_loadu_si512(sums.row(1) + i), half), chroma);
    const __m512i cr = _mm512_sra_epi32(_mm512_add_epi32(_mm512_loadu_si512(sums.row(2) + i), half), chroma);
    const __m512i both = _mm512_mask_blend_epi16(0xAAAAAAAAU, cb, _mm512_slli_epi32(cr, 16));
    const auto put = [&](int c, __m512i to) {
      const __m512i level = _mm512_dpwssd_epi32(y, both, to);
      _mm512_storeu_si512(sums.row(c) + i, _mm512_min_epi32(_mm512_max_epi32(level, zero), most));
    };
    put(0, to_r);
    put(1, to_g);
    put(2, to_b);
  }
}

// --- emit ---------------------------------------------------------------------------------------------------------

struct Scale {  // one channel's affine map, or the rounding of uint8
  __m512 mul, add;
  __m512i half;
  __m128i shift;
};

Scale scale_of(const Values& values, int c) {
  return {_mm512_set1_ps(values.mul[c]), _mm512_set1_ps(values.add[c]),
          _mm512_set1_epi32(values.shift == 0 ? 0 : 1 << (values.shift - 1)), _mm_cvtsi32_si128(values.shift)};
}

__m512 to_float(__m512i sums, const Scale& s) {
  return _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums), s.mul), s.add);  // -ffp-contract=off keeps them two
}
__m512i to_level(__m512i sums, const Scale& s) { return _mm512_sra_epi32(_mm512_add_epi32(sums, s.half), s.shift); }

// Formats: 16 values as the bytes of a register; kBytes of one value.
struct ToFloat32 {
  static constexpr int kBytes = 4;
  using Register = __m512i;
  static Register of(__m512i sums, const Scale& s) { return _mm512_castps_si512(to_float(sums, s)); }
};
struct ToFloat16 {
  static constexpr int kBytes = 2;
  using Register = __m256i;
  static Register of(__m512i sums, const Scale& s) {
    return _mm512_cvtps_ph(to_float(sums, s), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
};
struct ToBFloat16 {  // not vcvtneps2bf16: it flushes subnormals
  static constexpr int kBytes = 2;
  using Register = __m256i;
  static Register of(__m512i sums, const Scale& s) {
    const __m512i bits = _mm512_castps_si512(to_float(sums, s));
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
  }
};
struct ToUInt8 {
  static constexpr int kBytes = 1;
  using Register = __m128i;
  static Register of(__m512i sums, const Scale& s) { return _mm512_cvtepi32_epi8(to_level(sums, s)); }
};

void store(std::byte* to, __m512i v) { _mm512_storeu_si512(to, v); }
void store(std::byte* to, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), v); }
void store(std::byte* to, __m128i v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), v); }
void stream(std::byte* to, __m512i v) { _mm512_stream_si512(reinterpret_cast<__m512i*>(to), v); }
void stream(std::byte* to, __m256i v) { _mm256_stream_si256(reinterpret_cast<__m256i*>(to), v); }
void stream(std::byte* to, __m128i v) { _mm_stream_si128(reinterpret_cast<__m128i*>(to), v); }
void store_part(std::byte* to, __m512i v, int n) {
  _mm512_mask_storeu_epi32(to, static_cast<__mmask16>((1U << n) - 1), v);
}
void store_part(std::byte* to, __m256i v, int n) {
  _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1U << n) - 1), v);
}
void store_part(std::byte* to, __m128i v, int n) { _mm_mask_storeu_epi8(to, static_cast<__mmask16>((1U << n) - 1), v); }

template <typename Format>
void emit_chw(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  constexpr int kStep = 16 * Format::kBytes;
  for (int c = 0; c < 3; ++c) {
    const Scale scale = scale_of(values, c);
    std::byte* to = target.data + c * target.plane_bytes;
    const std::int32_t* in = sums.row(c);
    int i = 0;
    if (target.stream)
      for (; i + 16 <= target.width; i += 16, to += kStep) stream(to, Format::of(_mm512_loadu_si512(in + i), scale));
    else
      for (; i + 16 <= target.width; i += 16, to += kStep) store(to, Format::of(_mm512_loadu_si512(in + i), scale));
    if (i < target.width) store_part(to, Format::of(_mm512_loadu_si512(in + i), scale), target.width - i);
  }
}

void emit_hwc_uint8(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  const Scale scale = scale_of(values, 0);
  const __m512i three_of_four =
      _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const __m512i join = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 3, 7, 11, 15);
  std::byte* to = target.data;
  for (int i = 0; i < target.width; i += 16, to += 48) {
    const __m512i r = to_level(_mm512_loadu_si512(sums.row(0) + i), scale);
    const __m512i g = to_level(_mm512_loadu_si512(sums.row(1) + i), scale);
    const __m512i b = to_level(_mm512_loadu_si512(sums.row(2) + i), scale);
    const __m512i pixels = _mm512_or_si512(r, _mm512_or_si512(_mm512_slli_epi32(g, 8), _mm512_slli_epi32(b, 16)));
    const __m512i packed = _mm512_permutexvar_epi32(join, _mm512_shuffle_epi8(pixels, three_of_four));
    const int n = target.width - i < 16 ? target.width - i : 16;
    _mm512_mask_storeu_epi8(to, (1ULL << (3 * n)) - 1, packed);
  }
}

// Output lane k of three registers is pixel k / 3, channel k % 3: indices for a two-register permute of (R, G), then
// of (that, B). Lanes of T; bit `lanes` picks the second register.
template <typename T, int kLanes>
struct Interleave {
  T rg[3][kLanes], b[3][kLanes];
  constexpr Interleave() : rg(), b() {
    for (int k = 0; k < 3 * kLanes; ++k) {
      const int pixel = k / 3, c = k % 3, r = k / kLanes, lane = k % kLanes;
      rg[r][lane] = static_cast<T>(c == 1 ? kLanes + pixel : pixel);
      b[r][lane] = static_cast<T>(c == 2 ? kLanes + pixel : lane);
    }
  }
};
constexpr Interleave<std::int32_t, 16> kInterleave32;
constexpr Interleave<std::int16_t, 16> kInterleave16;

void interleave(std::byte* to, const __m512i (&v)[3], int n) {
  for (int r = 0; r < 3; ++r, to += 64) {
    const __m512i rg = _mm512_permutex2var_epi32(v[0], _mm512_loadu_si512(kInterleave32.rg[r]), v[1]);
    const __m512i all = _mm512_permutex2var_epi32(rg, _mm512_loadu_si512(kInterleave32.b[r]), v[2]);
    const int lanes = 3 * n - 16 * r;
    if (lanes >= 16)
      store(to, all);
    else if (lanes > 0)
      store_part(to, all, lanes);
  }
}

void interleave(std::byte* to, const __m256i (&v)[3], int n) {
  for (int r = 0; r < 3; ++r, to += 32) {
    const auto index = [](const std::int16_t* at) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at)); };
    const __m256i rg = _mm256_permutex2var_epi16(v[0], index(kInterleave16.rg[r]), v[1]);
    const __m256i all = _mm256_permutex2var_epi16(rg, index(kInterleave16.b[r]), v[2]);
    const int lanes = 3 * n - 16 * r;
    if (lanes >= 16)
      store(to, all);
    else if (lanes > 0)
      store_part(to, all, lanes);
  }
}

template <typename Format>
void emit_hwc(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  const Scale scales[3] = {scale_of(values, 0), scale_of(values, 1), scale_of(values, 2)};
  std::byte* to = target.data;
  for (int i = 0; i < target.width; i += 16, to += 48 * Format::kBytes) {
    typename Format::Register v[3];
    for (int c = 0; c < 3; ++c) v[c] = Format::of(_mm512_loadu_si512(sums.row(c) + i), scales[c]);
    interleave(to, v, target.width - i);
  }
}

constexpr Kernels kAVX512 = {
    .vertical = vertical,
    .vertical_plane = vertical_plane,
    .grouping = TapTable::Grouping::kWords16,
    .horizontal = {nullptr, horizontal<1>, horizontal<2>, horizontal<3>},
    .colour = colour,
    .split = split,
    .emit_chw = {emit_chw<ToUInt8>, emit_chw<ToFloat16>, emit_chw<ToBFloat16>, emit_chw<ToFloat32>},
    .emit_hwc = {emit_hwc_uint8, emit_hwc<ToFloat16>, emit_hwc<ToBFloat16>, emit_hwc<ToFloat32>},
    .fence = [] { _mm_sfence(); },
};

}  // namespace

const Kernels* kernels_avx512() noexcept { return best_cpu_level() >= CpuLevel::kAVX512 ? &kAVX512 : nullptr; }

}  // namespace infeed
