#include <immintrin.h>

#include <cstring>

#include "base/cpu.h"
#include "transform/resample.h"

namespace infeed {
namespace {

using Byte = std::uint8_t;

__m256i load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
void store(void* to, __m256i v) { _mm256_storeu_si256(static_cast<__m256i*>(to), v); }
void store_half(void* to, __m128i v) { _mm_storeu_si128(static_cast<__m128i*>(to), v); }

// The low 16 bits of 16 lanes of 32, all of them within int16.
__m256i pack(__m256i a, __m256i b) { return _mm256_permute4x64_epi64(_mm256_packs_epi32(a, b), 0xD8); }

// --- vertical -----------------------------------------------------------------------------------------------------

// Channel c of eight pixels of rows a and b as pairs of 16 bits. Words of a pixel's lane: even bytes (R, B), odd (G,
// X).
struct ChannelPairs {
  __m256i r, g, b;
  ChannelPairs(__m256i row_a, __m256i row_b) {
    const __m256i even_bytes = _mm256_set1_epi16(0xFF);
    const __m256i even_a = _mm256_and_si256(row_a, even_bytes), even_b = _mm256_and_si256(row_b, even_bytes);
    r = _mm256_blend_epi16(even_a, _mm256_slli_epi32(even_b, 16), 0xAA);
    b = _mm256_blend_epi16(_mm256_srli_epi32(even_a, 16), even_b, 0xAA);
    const __m256i odd_b = _mm256_slli_epi32(_mm256_srli_epi16(row_b, 8), 16);
    g = _mm256_blend_epi16(_mm256_srli_epi16(row_a, 8), odd_b, 0xAA);
  }
};

struct Sums {
  __m256i r, g, b;
  void add(const ChannelPairs& pairs, __m256i weights) {
    r = _mm256_add_epi32(r, _mm256_madd_epi16(pairs.r, weights));
    g = _mm256_add_epi32(g, _mm256_madd_epi16(pairs.g, weights));
    b = _mm256_add_epi32(b, _mm256_madd_epi16(pairs.b, weights));
  }
};

// 16 pixels a step, in two halves; a pair of rows is one multiply-add of channel pairs (row j, row j + 1).
template <int kPairs>  // 0: any number
void vertical_pairs(const RowTaps& rows, Planes<std::int16_t> out) {
  const int pairs = kPairs > 0 ? kPairs : (rows.taps + 1) / 2;
  const __m128i count = _mm_cvtsi32_si128(rows.shift - kPlaneBits);
  const __m256i half = _mm256_set1_epi32(1 << (rows.shift - kPlaneBits - 1));
  for (int x = 0; x < rows.width; x += 16) {
    Sums sums[2] = {{half, half, half}, {half, half, half}};
    const Byte* row = rows.pixels + std::ptrdiff_t{4} * x;
    for (int p = 0; p < pairs; ++p, row += 2 * rows.stride) {
      std::uint32_t both;
      std::memcpy(&both, rows.weights + 2 * p, sizeof both);
      const __m256i weights = _mm256_set1_epi32(static_cast<int>(both));
      const Byte* next = 2 * p + 1 < rows.taps ? row + rows.stride : row;
      sums[0].add(ChannelPairs(load(row), load(next)), weights);
      sums[1].add(ChannelPairs(load(row + 32), load(next + 32)), weights);
    }
    const auto put = [&](int c, __m256i a, __m256i b) {
      store(out.row(c) + x, pack(_mm256_sra_epi32(a, count), _mm256_sra_epi32(b, count)));
    };
    put(0, sums[0].r, sums[1].r);
    put(1, sums[0].g, sums[1].g);
    put(2, sums[0].b, sums[1].b);
  }
}

void vertical(const RowTaps& rows, Planes<std::int16_t> out) {
  switch ((rows.taps + 1) / 2) {
    case 1: return vertical_pairs<1>(rows, out);
    case 2: return vertical_pairs<2>(rows, out);
    default: return vertical_pairs<0>(rows, out);
  }
}

// 32 samples a step, in two halves. Unpacking pairs of rows and packing the sums both work within 128 bits: the order
// is kept.
template <int kPairs>  // 0: any number
void plane_pairs(const RowTaps& rows, std::int32_t offset, std::int16_t* out) {
  const int pairs = kPairs > 0 ? kPairs : (rows.taps + 1) / 2;
  const __m128i count = _mm_cvtsi32_si128(rows.shift - kPlaneBits);
  const __m256i begin = _mm256_set1_epi32((1 << (rows.shift - kPlaneBits - 1)) + offset);
  const auto words = [](const Byte* at) {
    return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  };
  for (int x = 0; x < rows.width; x += 32) {
    __m256i low[2] = {begin, begin}, high[2] = {begin, begin};
    const Byte* row = rows.pixels + x;
    for (int p = 0; p < pairs; ++p, row += 2 * rows.stride) {
      std::uint32_t both;
      std::memcpy(&both, rows.weights + 2 * p, sizeof both);
      const __m256i weights = _mm256_set1_epi32(static_cast<int>(both));
      const Byte* next = 2 * p + 1 < rows.taps ? row + rows.stride : row;
      for (int h = 0; h < 2; ++h) {
        const __m256i a = words(row + 16 * h), b = words(next + 16 * h);
        low[h] = _mm256_add_epi32(low[h], _mm256_madd_epi16(_mm256_unpacklo_epi16(a, b), weights));
        high[h] = _mm256_add_epi32(high[h], _mm256_madd_epi16(_mm256_unpackhi_epi16(a, b), weights));
      }
    }
    for (int h = 0; h < 2; ++h)
      store(out + x + 16 * h, _mm256_packs_epi32(_mm256_sra_epi32(low[h], count), _mm256_sra_epi32(high[h], count)));
  }
}

void vertical_plane(const RowTaps& rows, std::int32_t offset, std::int16_t* out) {
  switch ((rows.taps + 1) / 2) {
    case 1: return plane_pairs<1>(rows, offset, out);
    case 2: return plane_pairs<2>(rows, offset, out);
    default: return plane_pairs<0>(rows, offset, out);
  }
}

// --- horizontal ---------------------------------------------------------------------------------------------------

// Four pixels from each of four places.
__m256i gather(const std::int16_t* a, const std::int16_t* b, const std::int16_t* c, const std::int16_t* d) {
  const auto two = [](const std::int16_t* low, const std::int16_t* high) {
    std::int64_t bits;
    std::memcpy(&bits, high, sizeof bits);
    return _mm_insert_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(low)), bits, 1);
  };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(two(a, b)), two(c, d), 1);
}

// Eight outputs a step, four taps at a time. The halves hold outputs (0 1 | 4 5) and (2 3 | 6 7): hadd restores order.
template <int kChannels, int kQuads>  // kQuads of taps; 0: any number
void horizontal_quads(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const int quads = kQuads > 0 ? kQuads : table.stride / 4;
  const std::ptrdiff_t stride = quads * 4;
  const std::int16_t* weights = table.weights.data();
  const std::int32_t* start = table.start.data();
  for (int i = 0; i < table.outputs; i += 8, start += 8, weights += 8 * stride) {
    __m256i even[kChannels] = {}, odd[kChannels] = {};
    for (int q = 0; q < quads; ++q) {
      const std::int16_t* w = weights + 4 * q;
      const __m256i even_w = gather(w, w + stride, w + 4 * stride, w + 5 * stride);
      const __m256i odd_w = gather(w + 2 * stride, w + 3 * stride, w + 6 * stride, w + 7 * stride);
      for (int c = 0; c < kChannels; ++c) {
        const std::int16_t* taps = in.row(c) + 4 * q;
        const __m256i a = gather(taps + start[0], taps + start[1], taps + start[4], taps + start[5]);
        const __m256i b = gather(taps + start[2], taps + start[3], taps + start[6], taps + start[7]);
        even[c] = _mm256_add_epi32(even[c], _mm256_madd_epi16(a, even_w));
        odd[c] = _mm256_add_epi32(odd[c], _mm256_madd_epi16(b, odd_w));
      }
    }
    for (int c = 0; c < kChannels; ++c) store(out.row(c) + i, _mm256_hadd_epi32(even[c], odd[c]));
  }
}

// Two halves of a register from two places.
__m256i load_two(const std::int16_t* low, const std::int16_t* high) {
  const auto half = [](const std::int16_t* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); };
  return _mm256_inserti128_si256(_mm256_castsi128_si256(half(low)), half(high), 1);
}

// Sixteen outputs a step in two registers; four outputs share the eight pixels of a register's half, from which a byte
// shuffle takes a pair of taps for each.
template <int kChannels, int kPairs>  // kPairs 0: any number
void horizontal_groups(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const int pairs = kPairs > 0 ? kPairs : table.groups.pairs;
  const std::int32_t* base = table.groups.base.data();
  const std::int32_t* indices = table.groups.index.data();
  const std::int16_t* weights = table.groups.weights.data();
  for (int i = 0; i < table.outputs; i += 16, base += 4, weights += pairs * 32) {
    const __m256i index_a = load(indices + i), index_b = load(indices + i + 8);
    __m256i a[kChannels] = {}, b[kChannels] = {};
    for (int p = 0; p < pairs; ++p) {
      const __m256i weight_a = load(weights + p * 32), weight_b = load(weights + p * 32 + 16);
      for (int c = 0; c < kChannels; ++c) {
        const std::int16_t* pixels = in.row(c) + 2 * p;
        const __m256i taps_a = _mm256_shuffle_epi8(load_two(pixels + base[0], pixels + base[1]), index_a);
        const __m256i taps_b = _mm256_shuffle_epi8(load_two(pixels + base[2], pixels + base[3]), index_b);
        a[c] = _mm256_add_epi32(a[c], _mm256_madd_epi16(taps_a, weight_a));
        b[c] = _mm256_add_epi32(b[c], _mm256_madd_epi16(taps_b, weight_b));
      }
    }
    for (int c = 0; c < kChannels; ++c) {
      store(out.row(c) + i, a[c]);
      store(out.row(c) + i + 8, b[c]);
    }
  }
}

std::int32_t total(__m256i v) {
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xB1)));
}

// One output a step, for long filters: its taps lie together, the stride is a multiple of 32.
template <int kChannels>
void horizontal_long(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  const std::int32_t* start = table.start.data();
  const std::int16_t* weights = table.weights.data();
  for (int i = 0; i < table.outputs; ++i, weights += table.stride) {
    for (int c = 0; c < kChannels; ++c) {
      const std::int16_t* taps = in.row(c) + start[i];
      __m256i sum = _mm256_setzero_si256();
      for (int j = 0; j < table.stride; j += 16)
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(load(taps + j), load(weights + j)));
      out.row(c)[i] = total(sum);
    }
  }
}

template <int kChannels>
void horizontal(const TapTable& table, Planes<const std::int16_t> in, Planes<std::int32_t> out) {
  if (table.groups.usable) {
    if (table.groups.pairs == 1) return horizontal_groups<kChannels, 1>(table, in, out);
    if (table.groups.pairs == 2) return horizontal_groups<kChannels, 2>(table, in, out);
    return horizontal_groups<kChannels, 0>(table, in, out);
  }
  if (table.taps > TapTable::kLongTaps) return horizontal_long<kChannels>(table, in, out);
  if (table.stride == 4) return horizontal_quads<kChannels, 1>(table, in, out);
  if (table.stride == 8) return horizontal_quads<kChannels, 2>(table, in, out);
  return horizontal_quads<kChannels, 0>(table, in, out);
}

// --- colour -------------------------------------------------------------------------------------------------------

void colour(const ColourRow& row, Planes<std::int32_t> sums) {
  const __m128i luma = _mm_cvtsi32_si128(row.luma_drop), chroma = _mm_cvtsi32_si128(row.chroma_drop);
  const __m256i half = _mm256_set1_epi32(1 << (row.chroma_drop - 1));
  const __m256i zero = _mm256_setzero_si256(), most = _mm256_set1_epi32(kMaxColour);
  const auto factors = [](int cb, int cr) { return _mm256_set1_epi32((cr << 16) | (cb & 0xFFFF)); };
  const __m256i to_r = factors(0, kCrToR), to_g = factors(kCbToG, kCrToG), to_b = factors(kCbToB, 0);
  for (int i = 0; i < row.width; i += 8) {
    const __m256i y = _mm256_sra_epi32(load(sums.row(0) + i), luma);
    const __m256i cb = _mm256_sra_epi32(_mm256_add_epi32(load(sums.row(1) + i), half), chroma);
    const __m256i cr = _mm256_sra_epi32(_mm256_add_epi32(load(sums.row(2) + i), half), chroma);
    const __m256i both = _mm256_blend_epi16(cb, _mm256_slli_epi32(cr, 16), 0xAA);
    const auto put = [&](int c, __m256i to) {
      const __m256i level = _mm256_add_epi32(y, _mm256_madd_epi16(both, to));
      store(sums.row(c) + i, _mm256_min_epi32(_mm256_max_epi32(level, zero), most));
    };
    put(0, to_r);
    put(1, to_g);
    put(2, to_b);
  }
}

// --- emit ---------------------------------------------------------------------------------------------------------

void split(const Byte* pixels, int width, bool flip, Planes<std::int32_t> out) {
  const __m256i low_byte = _mm256_set1_epi32(0xFF), reverse = _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0);
  const auto put = [&](int x, __m256i v) {
    store(out.row(0) + x, _mm256_and_si256(v, low_byte));
    store(out.row(1) + x, _mm256_and_si256(_mm256_srli_epi32(v, 8), low_byte));
    store(out.row(2) + x, _mm256_and_si256(_mm256_srli_epi32(v, 16), low_byte));
  };
  if (!flip) {
    for (int x = 0; x < width; x += 8) put(x, load(pixels + std::ptrdiff_t{4} * x));  // rows have readable padding
    return;
  }
  int x = 0;
  for (; x + 8 <= width; x += 8)
    put(x, _mm256_permutevar8x32_epi32(load(pixels + std::ptrdiff_t{4} * (width - x - 8)), reverse));
  for (; x < width; ++x)
    for (int c = 0; c < 3; ++c) out.row(c)[x] = pixels[std::ptrdiff_t{4} * (width - 1 - x) + c];
}

struct Scale {  // one channel's affine map, or the rounding of uint8
  __m256 mul, add;
  __m256i half;
  __m128i shift;
};

Scale scale_of(const Values& values, int c) {
  return {_mm256_set1_ps(values.mul[c]), _mm256_set1_ps(values.add[c]),
          _mm256_set1_epi32(values.shift == 0 ? 0 : 1 << (values.shift - 1)), _mm_cvtsi32_si128(values.shift)};
}

__m256 to_float(__m256i sums, const Scale& s) {
  return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sums), s.mul), s.add);  // -ffp-contract=off keeps them two
}
__m256i to_level(__m256i sums, const Scale& s) { return _mm256_sra_epi32(_mm256_add_epi32(sums, s.half), s.shift); }

// Formats: eight values to `to`, which has room for just them; `aligned`: of a row that bypasses the cache.
struct ToFloat32 {
  static constexpr int kBytes = 4;
  static void put(std::byte* to, __m256i sums, const Scale& s) { store(to, _mm256_castps_si256(to_float(sums, s))); }
  static void stream(std::byte* to, __m256i sums, const Scale& s) {
    _mm256_stream_ps(reinterpret_cast<float*>(to), to_float(sums, s));
  }
};
struct ToFloat16 {
  static constexpr int kBytes = 2;
  static __m128i of(__m256i sums, const Scale& s) {
    return _mm256_cvtps_ph(to_float(sums, s), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static void put(std::byte* to, __m256i sums, const Scale& s) { store_half(to, of(sums, s)); }
  static void stream(std::byte* to, __m256i sums, const Scale& s) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), of(sums, s));
  }
};
struct ToBFloat16 {
  static constexpr int kBytes = 2;
  static __m128i of(__m256i sums, const Scale& s) {
    const __m256i bits = _mm256_castps_si256(to_float(sums, s));
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i upper = _mm256_srai_epi32(sum, 16);  // arithmetic, so that the saturating pack keeps the bits
    return _mm256_castsi256_si128(pack(upper, upper));
  }
  static void put(std::byte* to, __m256i sums, const Scale& s) { store_half(to, of(sums, s)); }
  static void stream(std::byte* to, __m256i sums, const Scale& s) {
    _mm_stream_si128(reinterpret_cast<__m128i*>(to), of(sums, s));
  }
};
struct ToUInt8 {
  static constexpr int kBytes = 1;
  static std::int64_t of(__m256i sums, const Scale& s) {
    const __m128i words = _mm256_castsi256_si128(pack(to_level(sums, s), to_level(sums, s)));
    return _mm_cvtsi128_si64(_mm_packus_epi16(words, words));
  }
  static void put(std::byte* to, __m256i sums, const Scale& s) {
    const std::int64_t bytes = of(sums, s);
    std::memcpy(to, &bytes, sizeof bytes);
  }
  static void stream(std::byte* to, __m256i sums, const Scale& s) {
    _mm_stream_si64(reinterpret_cast<long long*>(to), of(sums, s));
  }
};

template <typename Format>
void emit_chw(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  constexpr int kStep = 8 * Format::kBytes;
  for (int c = 0; c < 3; ++c) {
    const Scale scale = scale_of(values, c);
    std::byte* to = target.data + c * target.plane_bytes;
    const std::int32_t* in = sums.row(c);
    int i = 0;
    if (target.stream)
      for (; i + 8 <= target.width; i += 8, to += kStep) Format::stream(to, load(in + i), scale);
    else
      for (; i + 8 <= target.width; i += 8, to += kStep) Format::put(to, load(in + i), scale);
    if (i == target.width) continue;
    std::byte rest[kStep];
    Format::put(rest, load(in + i), scale);
    std::memcpy(to, rest, static_cast<std::size_t>(target.width - i) * Format::kBytes);
  }
}

void emit_hwc_uint8(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  const Scale scale = scale_of(values, 0);
  const __m256i three_of_four =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
  const __m256i join = _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7);
  std::byte* to = target.data;
  for (int i = 0; i < target.width; i += 8, to += 24) {
    const __m256i r = to_level(load(sums.row(0) + i), scale), g = to_level(load(sums.row(1) + i), scale);
    const __m256i b = to_level(load(sums.row(2) + i), scale);
    const __m256i pixels = _mm256_or_si256(r, _mm256_or_si256(_mm256_slli_epi32(g, 8), _mm256_slli_epi32(b, 16)));
    const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(pixels, three_of_four), join);
    std::byte bytes[32];
    store(bytes, packed);
    const int n = target.width - i < 8 ? target.width - i : 8;
    std::memcpy(to, bytes, n == 8 ? 24 : static_cast<std::size_t>(3 * n));
  }
}

// Eight values a channel to memory in the cache, then pixel by pixel.
template <typename Format>
void emit_hwc(Planes<const std::int32_t> sums, const Values& values, const RowTarget& target) {
  constexpr int kBytes = Format::kBytes;
  const Scale scales[3] = {scale_of(values, 0), scale_of(values, 1), scale_of(values, 2)};
  std::byte* to = target.data;
  for (int i = 0; i < target.width; i += 8) {
    std::byte rows[3][8 * kBytes];
    for (int c = 0; c < 3; ++c) Format::put(rows[c], load(sums.row(c) + i), scales[c]);
    const int n = target.width - i < 8 ? target.width - i : 8;
    for (int x = 0; x < n; ++x)
      for (int c = 0; c < 3; ++c, to += kBytes) std::memcpy(to, rows[c] + x * kBytes, kBytes);
  }
}

constexpr Kernels kAVX2 = {
    .vertical = vertical,
    .vertical_plane = vertical_plane,
    .grouping = TapTable::Grouping::kBytes4,
    .horizontal = {nullptr, horizontal<1>, horizontal<2>, horizontal<3>},
    .colour = colour,
    .split = split,
    .emit_chw = {emit_chw<ToUInt8>, emit_chw<ToFloat16>, emit_chw<ToBFloat16>, emit_chw<ToFloat32>},
    .emit_hwc = {emit_hwc_uint8, emit_hwc<ToFloat16>, emit_hwc<ToBFloat16>, emit_hwc<ToFloat32>},
    .fence = [] { _mm_sfence(); },
};

}  // namespace

const Kernels* kernels_avx2() noexcept { return best_cpu_level() >= CpuLevel::kAVX2 ? &kAVX2 : nullptr; }

}  // namespace infeed
