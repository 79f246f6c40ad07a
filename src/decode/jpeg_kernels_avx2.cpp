// Compiled with -mavx2: nothing here may be called before a look at the processor.
#include <immintrin.h>

#include "base/cpu.h"
#include "decode/fixed_point.h"
#include "decode/jpeg_kernels.h"

namespace infeed {
namespace {

// --- inverse DCT: two blocks side by side, the low half of each register is block a, the high half block b

using namespace islow;

__m256i pairs(std::int32_t even, std::int32_t odd) { return _mm256_set1_epi32((odd << 16) | (even & 0xFFFF)); }

/// 32-bit sums of eight columns: `low` columns 0..3, `high` 4..7, of each block.
struct Wide {
  __m256i low, high;
};

Wide operator+(const Wide& a, const Wide& b) {
  return {_mm256_add_epi32(a.low, b.low), _mm256_add_epi32(a.high, b.high)};
}
Wide operator-(const Wide& a, const Wide& b) {
  return {_mm256_sub_epi32(a.low, b.low), _mm256_sub_epi32(a.high, b.high)};
}

/// x and y, interleaved for dot().
Wide interleave(__m256i x, __m256i y) { return {_mm256_unpacklo_epi16(x, y), _mm256_unpackhi_epi16(x, y)}; }
Wide dot(const Wide& xy, std::int32_t kx, std::int32_t ky) {
  const __m256i k = pairs(kx, ky);
  return {_mm256_madd_epi16(xy.low, k), _mm256_madd_epi16(xy.high, k)};
}
/// x << kConstBits in 32 bits.
Wide shift_up(__m256i x) {
  const __m256i zero = _mm256_setzero_si256();
  return {_mm256_srai_epi32(_mm256_unpacklo_epi16(zero, x), 16 - kConstBits),
          _mm256_srai_epi32(_mm256_unpackhi_epi16(zero, x), 16 - kConstBits)};
}
template <int kBits>
__m256i descale(const Wide& x) {
  const __m256i round = _mm256_set1_epi32(1 << (kBits - 1));
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(x.low, round), kBits),
                            _mm256_srai_epi32(_mm256_add_epi32(x.high, round), kBits));
}

/// One dimension over the eight rows.
template <int kBits>
void transform(__m256i (&v)[8]) {
  const Wide even = interleave(v[2], v[6]);
  const Wide even3 = dot(even, k0_541 + k0_765, k0_541), even2 = dot(even, k0_541, k0_541 - k1_847);
  const Wide even0 = shift_up(_mm256_add_epi16(v[0], v[4])), even1 = shift_up(_mm256_sub_epi16(v[0], v[4]));
  const Wide e0 = even0 + even3, e3 = even0 - even3, e1 = even1 + even2, e2 = even1 - even2;

  const Wide s = interleave(_mm256_add_epi16(v[7], v[3]), _mm256_add_epi16(v[5], v[1]));
  const Wide z3 = dot(s, k1_175 - k1_961, k1_175), z4 = dot(s, k1_175, k1_175 - k0_390);
  const Wide v71 = interleave(v[7], v[1]), v53 = interleave(v[5], v[3]);
  const Wide o0 = dot(v71, k0_298 - k0_899, -k0_899) + z3, o3 = dot(v71, -k0_899, k1_501 - k0_899) + z4;
  const Wide o1 = dot(v53, k2_053 - k2_562, -k2_562) + z4, o2 = dot(v53, -k2_562, k3_072 - k2_562) + z3;

  v[0] = descale<kBits>(e0 + o3), v[7] = descale<kBits>(e0 - o3);
  v[1] = descale<kBits>(e1 + o2), v[6] = descale<kBits>(e1 - o2);
  v[2] = descale<kBits>(e2 + o1), v[5] = descale<kBits>(e2 - o1);
  v[3] = descale<kBits>(e3 + o0), v[4] = descale<kBits>(e3 - o0);
}

/// Rows to columns, within each block.
void transpose(__m256i (&v)[8]) {
  __m256i a[8], b[8];
  for (int i = 0; i < 4; ++i) {
    a[2 * i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
    a[2 * i + 1] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    b[4 * i] = _mm256_unpacklo_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 1] = _mm256_unpackhi_epi32(a[4 * i], a[4 * i + 2]);
    b[4 * i + 2] = _mm256_unpacklo_epi32(a[4 * i + 1], a[4 * i + 3]);
    b[4 * i + 3] = _mm256_unpackhi_epi32(a[4 * i + 1], a[4 * i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    v[2 * i] = _mm256_unpacklo_epi64(b[i], b[i + 4]);
    v[2 * i + 1] = _mm256_unpackhi_epi64(b[i], b[i + 4]);
  }
}

__m256i load_rows(const std::int16_t* a, const std::int16_t* b, std::size_t row) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(a + row * 8))),
                                 _mm_load_si128(reinterpret_cast<const __m128i*>(b + row * 8)), 1);
}
__m256i load_quant(const QuantTable& a, const QuantTable& b, std::size_t row) {
  return _mm256_inserti128_si256(
      _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a.data() + row * 8))),
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(b.data() + row * 8)), 1);
}

void store_block(__m128i (&rows)[4], std::uint8_t* out, std::ptrdiff_t stride) {
  for (const __m128i row : rows) {
    _mm_storel_epi64(reinterpret_cast<__m128i*>(out), row);
    _mm_storeh_pd(reinterpret_cast<double*>(out + stride), _mm_castsi128_pd(row));
    out += 2 * stride;
  }
}

bool has_first_row_only(const std::int16_t* coefficients) {
  __m128i any = _mm_load_si128(reinterpret_cast<const __m128i*>(coefficients + 8));
  for (std::size_t row = 2; row < 8; ++row)
    any = _mm_or_si128(any, _mm_load_si128(reinterpret_cast<const __m128i*>(coefficients + row * 8)));
  return _mm_testz_si128(any, any) != 0;
}

/// Blocks that take a way of their own, or have no full partner.
bool is_simple(const IdctJob& job) { return job.flat || has_first_row_only(job.coefficients); }

void transform_pair(const IdctJob& a, std::ptrdiff_t stride_a, const IdctJob& b, std::ptrdiff_t stride_b) {
  __m256i v[8];
  for (std::size_t row = 0; row < 8; ++row)
    v[row] = _mm256_mullo_epi16(load_rows(a.coefficients, b.coefficients, row), load_quant(*a.quant, *b.quant, row));
  transform<kConstBits - kPass1Bits>(v);
  transpose(v);
  transform<kConstBits + kPass1Bits + 3>(v);
  transpose(v);
  const __m256i centre = _mm256_set1_epi8(-128);
  __m128i rows_a[4], rows_b[4];
  for (int i = 0; i < 4; ++i) {
    const __m256i packed = _mm256_add_epi8(_mm256_packs_epi16(v[2 * i], v[2 * i + 1]), centre);
    rows_a[i] = _mm256_castsi256_si128(packed);
    rows_b[i] = _mm256_extracti128_si256(packed, 1);
  }
  store_block(rows_a, a.out, stride_a);
  store_block(rows_b, b.out, stride_b);
}

void idct_pair(const IdctJob& a, std::ptrdiff_t stride_a, const IdctJob& b, std::ptrdiff_t stride_b) noexcept {
  const bool simple_a = is_simple(a), simple_b = is_simple(b);
  if (simple_a) idct_portable(a, stride_a);
  if (simple_b) idct_portable(b, stride_b);
  if (simple_a && simple_b) return;
  if (simple_a || simple_b)
    return simple_a ? transform_pair(b, stride_b, b, stride_b) : transform_pair(a, stride_a, a, stride_a);
  transform_pair(a, stride_a, b, stride_b);
}

// --- chroma upsampling: 16 samples to 32

__m256i widen(const std::uint8_t* samples) {
  return _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(samples)));
}
__m256i thrice(__m256i x) { return _mm256_add_epi16(_mm256_add_epi16(x, x), x); }
/// even[0] odd[0] even[1] ...; both in 0..255.
void store_interleaved(__m256i even, __m256i odd, std::uint8_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_or_si256(even, _mm256_slli_epi16(odd, 8)));
}

void double_row(const std::uint8_t* in, int count, std::uint8_t* out) noexcept {
  for (int i = 0; i < count; i += 16) {
    const __m256i three = thrice(widen(in + i));
    const __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, widen(in + i - 1)), _mm256_set1_epi16(1));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(three, widen(in + i + 1)), _mm256_set1_epi16(2));
    store_interleaved(_mm256_srli_epi16(even, 2), _mm256_srli_epi16(odd, 2), out + std::ptrdiff_t{2} * i);
  }
}

void double_both(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) noexcept {
  const auto sum = [&](std::ptrdiff_t i) { return _mm256_add_epi16(thrice(widen(near + i)), widen(far + i)); };
  for (std::ptrdiff_t i = 0; i < count; i += 16) {
    const __m256i three = thrice(sum(i));
    const __m256i even = _mm256_add_epi16(_mm256_add_epi16(three, sum(i - 1)), _mm256_set1_epi16(8));
    const __m256i odd = _mm256_add_epi16(_mm256_add_epi16(three, sum(i + 1)), _mm256_set1_epi16(7));
    store_interleaved(_mm256_srli_epi16(even, 4), _mm256_srli_epi16(odd, 4), out + 2 * i);
  }
}

// --- colour: 16 pixels

/// (x * k + 2^15) >> 16 for |x| <= 128: half of the product's high word of 2 x, rounded.
__m256i scale(__m256i x, std::int16_t k) {
  const __m256i twice = _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(k));
  return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

constexpr std::int32_t fraction(double x) { return fixed_point(x, 16); }
constexpr std::int32_t kOne = 65536;

/// -0.344 b + 0.286 r, rounded: the green part of 0.714 that a whole r leaves.
__m256i green_part(__m256i b, __m256i r) {
  const __m256i k = pairs(-fraction(0.34414), kOne - fraction(0.71414));
  const __m256i half = _mm256_set1_epi32(1 << 15);
  const __m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi16(b, r), k);
  const __m256i high = _mm256_madd_epi16(_mm256_unpackhi_epi16(b, r), k);
  return _mm256_packs_epi32(_mm256_srai_epi32(_mm256_add_epi32(low, half), 16),
                            _mm256_srai_epi32(_mm256_add_epi32(high, half), 16));
}

void store_pixels(__m256i red, __m256i green, __m256i blue, std::uint8_t* out) {
  const __m256i red_blue = _mm256_packus_epi16(red, blue);  // per half: 8 red, 8 blue
  const __m256i green_one = _mm256_packus_epi16(green, _mm256_set1_epi16(255));
  const __m256i low = _mm256_unpacklo_epi8(red_blue, green_one);   // r g r g ...
  const __m256i high = _mm256_unpackhi_epi8(red_blue, green_one);  // b 255 b 255 ...
  const __m256i first = _mm256_unpacklo_epi16(low, high);          // pixels 0..3 | 8..11
  const __m256i second = _mm256_unpackhi_epi16(low, high);         // pixels 4..7 | 12..15
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm256_permute2x128_si256(first, second, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 32), _mm256_permute2x128_si256(first, second, 0x31));
}

void colour(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int count,
            std::uint8_t* out) noexcept {
  const __m256i centre = _mm256_set1_epi16(128);
  for (std::ptrdiff_t i = 0; i < count; i += 16) {
    const __m256i luma = widen(y + i);
    const __m256i b = _mm256_sub_epi16(widen(cb + i), centre), r = _mm256_sub_epi16(widen(cr + i), centre);
    const __m256i red = _mm256_add_epi16(_mm256_add_epi16(luma, r), scale(r, fraction(1.402) - kOne));
    const __m256i blue =
        _mm256_add_epi16(_mm256_add_epi16(luma, _mm256_add_epi16(b, b)), scale(b, fraction(1.772) - 2 * kOne));
    const __m256i green = _mm256_add_epi16(_mm256_sub_epi16(luma, r), green_part(b, r));
    store_pixels(red, green, blue, out + 4 * i);
  }
}

}  // namespace

const JpegKernels* jpeg_kernels_avx2() noexcept {
  static constexpr JpegKernels kernels{idct_pair, double_row, double_both, colour};
  return best_cpu_level() >= CpuLevel::kAVX2 ? &kernels : nullptr;
}

}  // namespace infeed
