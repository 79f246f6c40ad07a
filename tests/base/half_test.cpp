#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace infeed {
namespace {

bool is_nan16(std::uint16_t half) { return (half & 0x7FFFU) > 0x7C00U; }

/// The two candidates around `value` and the nearer one, ties to the even: by definition, not by bits.
std::uint16_t nearest_half(float value) {
  std::uint16_t best = 0x7C00;
  for (std::uint32_t bits = 0; bits < 0x7C00U; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float distance = std::fabs(float16_to_float(half) - value);
    const float least = best == 0x7C00 ? 65536.0F - value : std::fabs(float16_to_float(best) - value);
    if (distance < least || (distance == least && half % 2 == 0)) best = half;
  }
  return best;
}

TEST(Float16, ReturnsEveryValueUnchanged) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const std::uint16_t quiet = is_nan16(half) ? half | 0x0200U : half;
    ASSERT_EQ(float_to_float16(float16_to_float(half)), quiet) << bits;
    ASSERT_EQ(float_to_float16_portable(float16_to_float_portable(half)), quiet) << bits;
  }
}

TEST(Float16, KnowsWhatItsValuesMean) {
  EXPECT_EQ(float16_to_float(0x3C00), 1.0F);
  EXPECT_EQ(float16_to_float(0xC000), -2.0F);
  EXPECT_EQ(float16_to_float(0x7BFF), 65504.0F);
  EXPECT_EQ(float16_to_float(0x0001), 0x1p-24F);
  EXPECT_EQ(float16_to_float(0x0400), 0x1p-14F);
  EXPECT_EQ(float16_to_float(0x7C00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::signbit(float16_to_float(0x8000)));
  EXPECT_TRUE(std::isnan(float16_to_float(0x7C01)));
}

TEST(Float16, RoundsMidpointsToEven) {
  for (std::uint32_t bits = 0; bits + 1 < 0x7C00U; ++bits) {  // exhaustive over neighbours
    const float low = float16_to_float(static_cast<std::uint16_t>(bits));
    const float high = float16_to_float(static_cast<std::uint16_t>(bits + 1));
    const float middle = low + (high - low) / 2;
    ASSERT_EQ(float_to_float16(middle), bits + bits % 2) << bits;
    ASSERT_EQ(float_to_float16(std::nextafter(middle, 0.0F)), bits) << bits;
    ASSERT_EQ(float_to_float16(std::nextafter(middle, high)), bits + 1) << bits;
  }
}

TEST(Float16, RoundsToTheNearest) {
  for (const float value : {0.1F, 1.0F / 3, 3.14159F, 1e-5F, 5.9e-8F, 2.9e-8F, 65504.0F, 65519.0F, 65520.0F, 1234.567F})
    EXPECT_EQ(float_to_float16(value), nearest_half(value)) << value;
}

TEST(Float16, OverflowsToInfinity) {
  EXPECT_EQ(float_to_float16(65519.996F), 0x7BFF);
  EXPECT_EQ(float_to_float16(65520.0F), 0x7C00);
  EXPECT_EQ(float_to_float16(-1e30F), 0xFC00);
  EXPECT_TRUE(is_nan16(float_to_float16(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Float16, IsTheSameFastAndPortable) {  // a prime step visits all exponents and many mantissas
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += 4099) {
    const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    ASSERT_EQ(float_to_float16(value), float_to_float16_portable(value)) << bits;
  }
}

TEST(BFloat16, ReturnsEveryValueUnchanged) {
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const auto brief = static_cast<std::uint16_t>(bits);
    const bool nan = (brief & 0x7FFFU) > 0x7F80U;
    ASSERT_EQ(float_to_bfloat16(bfloat16_to_float(brief)), nan ? brief | 0x40U : brief) << bits;
  }
}

TEST(BFloat16, RoundsMidpointsToEven) {
  for (std::uint32_t bits = 0; bits < 0x7F80U; ++bits) {
    const std::uint32_t middle = (bits << 16) | 0x8000U;
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>(middle)), bits + bits % 2) << bits;
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>(middle - 1)), bits) << bits;
    ASSERT_EQ(float_to_bfloat16(std::bit_cast<float>(middle + 1)), bits + 1) << bits;
  }
}

}  // namespace
}  // namespace infeed
