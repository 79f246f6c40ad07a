#include "decode/idct.h"

#include <algorithm>
#include <cstring>

namespace infeed {
namespace {

using namespace islow;

std::int16_t wrap(std::int32_t x) { return static_cast<std::int16_t>(static_cast<std::uint32_t>(x)); }
std::int32_t sum(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
std::int32_t difference(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) - static_cast<std::uint32_t>(b));
}
/// a * ka + b * kb, modulo 2^32.
std::int32_t dot(std::int32_t a, std::int32_t ka, std::int32_t b, std::int32_t kb) { return sum(a * ka, b * kb); }
std::int32_t shift_up(std::int32_t x) { return static_cast<std::int32_t>(static_cast<std::uint32_t>(x) << kConstBits); }

/// One dimension: in[0..7] to eight sums that are still to be rounded and shifted down.
void transform(const std::int16_t (&in)[8], std::int32_t (&out)[8]) {
  const std::int32_t even3 = dot(in[2], k0_541 + k0_765, in[6], k0_541);
  const std::int32_t even2 = dot(in[2], k0_541, in[6], k0_541 - k1_847);
  const std::int32_t even0 = shift_up(wrap(in[0] + in[4]));
  const std::int32_t even1 = shift_up(wrap(in[0] - in[4]));
  const std::int32_t e0 = sum(even0, even3), e3 = difference(even0, even3);
  const std::int32_t e1 = sum(even1, even2), e2 = difference(even1, even2);

  const std::int32_t s3 = wrap(in[7] + in[3]), s4 = wrap(in[5] + in[1]);
  const std::int32_t z3 = dot(s3, k1_175 - k1_961, s4, k1_175), z4 = dot(s3, k1_175, s4, k1_175 - k0_390);
  const std::int32_t o0 = sum(dot(in[7], k0_298 - k0_899, in[1], -k0_899), z3);
  const std::int32_t o1 = sum(dot(in[5], k2_053 - k2_562, in[3], -k2_562), z4);
  const std::int32_t o2 = sum(dot(in[5], -k2_562, in[3], k3_072 - k2_562), z3);
  const std::int32_t o3 = sum(dot(in[7], -k0_899, in[1], k1_501 - k0_899), z4);

  out[0] = sum(e0, o3), out[7] = difference(e0, o3);
  out[1] = sum(e1, o2), out[6] = difference(e1, o2);
  out[2] = sum(e2, o1), out[5] = difference(e2, o1);
  out[3] = sum(e3, o0), out[4] = difference(e3, o0);
}

std::int16_t descale(std::int32_t x, int bits) {
  return static_cast<std::int16_t>(std::clamp(sum(x, 1 << (bits - 1)) >> bits, -32768, 32767));
}

std::uint8_t sample(std::int32_t x) {
  const std::int16_t word = descale(x, kConstBits + kPass1Bits + 3);
  return static_cast<std::uint8_t>(std::clamp<int>(word, -128, 127) + 128);
}

// libjpeg's way out of the first pass: without a coefficient below the first row, that row is only shifted, and wraps
// where the long way would saturate.
bool has_first_row_only(const std::int16_t* coefficients) {
  return std::all_of(coefficients + 8, coefficients + 64, [](std::int16_t x) { return x == 0; });
}

void columns(const IdctJob& job, std::int16_t (&workspace)[64]) {
  const bool shift_only = has_first_row_only(job.coefficients);
  for (std::size_t column = 0; column < 8; ++column) {
    std::int16_t in[8];
    for (std::size_t row = 0; row < 8; ++row)
      in[row] = wrap(job.coefficients[row * 8 + column] * (*job.quant)[row * 8 + column]);
    std::int32_t out[8];
    transform(in, out);
    for (std::size_t row = 0; row < 8; ++row)
      workspace[row * 8 + column] =
          shift_only ? wrap(in[0] * (1 << kPass1Bits)) : descale(out[row], kConstBits - kPass1Bits);
  }
}

}  // namespace

void idct_flat(const IdctJob& job, std::ptrdiff_t stride) noexcept {
  const std::int16_t dc = wrap(wrap(job.coefficients[0] * (*job.quant)[0]) * (1 << kPass1Bits));
  const std::uint8_t value = sample(shift_up(dc));
  for (std::ptrdiff_t row = 0; row < 8; ++row) std::memset(job.out + row * stride, value, 8);
}

void idct_portable(const IdctJob& job, std::ptrdiff_t stride) noexcept {
  if (job.flat) return idct_flat(job, stride);
  std::int16_t workspace[64];
  columns(job, workspace);
  for (std::ptrdiff_t row = 0; row < 8; ++row) {
    std::int16_t in[8];
    std::copy_n(workspace + row * 8, 8, in);
    std::int32_t out[8];
    transform(in, out);
    std::transform(out, out + 8, job.out + row * stride, sample);
  }
}

void idct_pair_portable(const IdctJob& a, std::ptrdiff_t stride_a, const IdctJob& b, std::ptrdiff_t stride_b) noexcept {
  idct_portable(a, stride_a);
  idct_portable(b, stride_b);
}

}  // namespace infeed
