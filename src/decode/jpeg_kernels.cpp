#include "decode/jpeg_kernels.h"

#include <algorithm>

#include "base/cpu.h"
#include "decode/fixed_point.h"

namespace infeed {
namespace {

constexpr int kHalf = 1 << 15;
constexpr std::int32_t fraction(double x) { return fixed_point(x, 16); }
constexpr std::int32_t kRedCr = fraction(1.402), kBlueCb = fraction(1.772), kGreenCb = fraction(0.34414),
                       kGreenCr = fraction(0.71414);

std::uint8_t clamp(std::int32_t x) { return static_cast<std::uint8_t>(std::clamp(x, 0, 255)); }

void double_row(const std::uint8_t* in, int count, std::uint8_t* out) noexcept {
  for (int i = 0; i < count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * in[i] + in[i - 1] + 1) >> 2);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * in[i] + in[i + 1] + 2) >> 2);
  }
}

void double_both(const std::uint8_t* near, const std::uint8_t* far, int count, std::uint8_t* out) noexcept {
  const auto sum = [&](int i) { return 3 * near[i] + far[i]; };
  for (int i = 0; i < count; ++i) {
    out[2 * i] = static_cast<std::uint8_t>((3 * sum(i) + sum(i - 1) + 8) >> 4);
    out[2 * i + 1] = static_cast<std::uint8_t>((3 * sum(i) + sum(i + 1) + 7) >> 4);
  }
}

void colour(const std::uint8_t* y, const std::uint8_t* cb, const std::uint8_t* cr, int count,
            std::uint8_t* out) noexcept {
  for (int i = 0; i < count; ++i) {
    const std::int32_t b = cb[i] - 128, r = cr[i] - 128;
    out[4 * i] = clamp(y[i] + ((kRedCr * r + kHalf) >> 16));
    out[4 * i + 1] = clamp(y[i] + ((-kGreenCb * b - kGreenCr * r + kHalf) >> 16));
    out[4 * i + 2] = clamp(y[i] + ((kBlueCb * b + kHalf) >> 16));
    out[4 * i + 3] = 255;
  }
}

}  // namespace

const JpegKernels& jpeg_kernels_portable() noexcept {
  static constexpr JpegKernels kernels{idct_pair_portable, double_row, double_both, colour};
  return kernels;
}

const JpegKernels& jpeg_kernels() {
  static const JpegKernels* const chosen =
      cpu_level() >= CpuLevel::kAVX2 && jpeg_kernels_avx2() != nullptr ? jpeg_kernels_avx2() : &jpeg_kernels_portable();
  return *chosen;
}

#if !defined(__x86_64__)
const JpegKernels* jpeg_kernels_avx2() noexcept { return nullptr; }
#endif

}  // namespace infeed
