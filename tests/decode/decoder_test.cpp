// What a Decoder promises whatever the file: colours, windows, buffers, and the public functions over it.

#include "decode/decoder.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "decode/cmyk.h"
#include "decode/jpeg_maker.h"
#include "decode/jpeg_plan.h"
#include "decode/pixel_buffer.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::JpegColor;
using testing::JpegRecipe;
using testing::make_jpeg;

// Mean distance in levels.
double distance(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(a[i] - b[i]);
  return a.size() == b.size() ? sum / static_cast<double>(a.size()) : 255;
}

std::vector<std::uint8_t> inked(const std::vector<std::uint8_t>& rgb) {
  std::vector<std::uint8_t> pixels = testing::to_cmyk(rgb);
  cmyk_to_rgbx(pixels.data(), static_cast<int>(pixels.size() / 4));
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i < pixels.size(); i += 4) out.insert(out.end(), {pixels[i], pixels[i + 1], pixels[i + 2]});
  return out;
}

TEST(DecoderTest, GivesTheColoursThatWereEncoded) {
  const std::vector<std::uint8_t> rgb = testing::draw(128, 96, 3, 5);
  for (const JpegColor color : {JpegColor::kYCbCr, JpegColor::kRGB, JpegColor::kCMYK, JpegColor::kYCCK}) {
    const JpegRecipe recipe{.width = 128, .height = 96, .color = color, .quality = 95};
    const bool ink = color == JpegColor::kCMYK || color == JpegColor::kYCCK;
    EXPECT_LT(distance(decode_image(make_jpeg(recipe, rgb)).pixels, ink ? inked(rgb) : rgb), 2.5) << to_string(recipe);
  }
}

TEST(DecoderTest, SpreadsGray) {
  const Image image = decode_image(make_jpeg({.color = JpegColor::kGray}));
  for (std::size_t i = 0; i < image.pixels.size(); i += 3) {
    ASSERT_EQ(image.pixels[i], image.pixels[i + 1]);
    ASSERT_EQ(image.pixels[i], image.pixels[i + 2]);
  }
}

TEST(DecoderTest, ConvertsInkAsPillowDoes) {
  std::uint8_t pixels[] = {255, 255, 255, 255, 0, 255, 255, 200, 100, 150, 250, 128, 10, 0, 255, 0};
  cmyk_to_rgbx(pixels, 4);
  const std::uint8_t wanted[] = {255, 255, 255, 255, 0, 200, 200, 200, 50, 75, 125, 128, 0, 0, 0, 0};
  EXPECT_TRUE(std::equal(std::begin(pixels), std::end(pixels), std::begin(wanted)));
}

TEST(DecoderTest, ProbesWithoutDecoding) {
  const Bytes file = make_jpeg({.width = 60, .height = 40});
  const ImageInfo info = probe_image(testing::first_bytes(file, file.size() / 2));
  EXPECT_EQ(info.format, ImageFormat::kJPEG);
  EXPECT_EQ(info.width, 60);
  EXPECT_EQ(info.height, 40);
  EXPECT_EQ(info.orientation, 1);
}

TEST(DecoderTest, HoldsExactlyTheWindow) {
  Decoder decoder;
  const Bytes file = make_jpeg({});
  decoder.open(file, {});
  const PixelWindow& window = decoder.decode({5, 7, 20, 11}, 20, 11);
  EXPECT_EQ(window.x0, 5);
  EXPECT_EQ(window.y0, 7);
  EXPECT_EQ(window.width, 20);
  EXPECT_EQ(window.height, 11);
  EXPECT_EQ(window.scale_num, 8);
  EXPECT_EQ(window.full_width, 64);
  EXPECT_EQ(window.full_height, 48);
}

TEST(DecoderTest, LeavesSixtyFourReadableBytesBehindEachRow) {
  Decoder decoder;
  const Bytes file = make_jpeg({});
  decoder.open(file, {});
  const PixelWindow window = decoder.decode({0, 0, 64, 48}, 64, 48);
  std::array<std::uint8_t, 64> behind{};
  for (int y = 0; y < 48; ++y) {  // the address sanitizer looks on
    std::memcpy(behind.data(), window.pixels + y * window.stride + 64 * 4, behind.size());
  }
  EXPECT_GE(window.stride, 64 * 4 + 64);
}

TEST(DecoderTest, RefusesAWindowThatLeavesThePicture) {
  Decoder decoder;
  const Bytes file = make_jpeg({});
  decoder.open(file, {});
  for (const Window& w : {Window{-1, 0, 4, 4}, Window{0, 0, 65, 4}, Window{60, 0, 5, 4}, Window{0, 48, 4, 1},
                          Window{0, 0, 0, 4}, Window{0, 2147483647, 4, 2}, Window{2, 0, 2147483647, 4}}) {
    EXPECT_THROW(decoder.decode(w, 4, 4), ConfigError);
  }
}

TEST(DecoderTest, RefusesToDecodeBeforeOpenAndAfterAFailedOne) {
  Decoder decoder;
  EXPECT_THROW(decoder.decode({0, 0, 1, 1}, 1, 1), ConfigError);
  EXPECT_THROW(decoder.open(testing::bytes_of("no picture"), {}), DecodeError);
  EXPECT_THROW(decoder.decode({0, 0, 1, 1}, 1, 1), ConfigError);
}

TEST(DecoderTest, TakesTheSmallestScaleThatStillFillsTheOutput) {
  const auto scale = [](int out_width, int out_height, bool exact) {
    return plan_jpeg(1000, 800, {100, 100, 800, 600}, out_width, out_height, exact).scale_num;
  };
  EXPECT_EQ(scale(100, 75, false), 1);
  EXPECT_EQ(scale(101, 75, false), 2);
  EXPECT_EQ(scale(224, 224, false), 4);
  EXPECT_EQ(scale(401, 10, false), 8);
  EXPECT_EQ(scale(100, 75, true), 8);
}

TEST(DecoderTest, PlansTwoPixelsRoundTheWindowWithinThePicture) {
  const JpegPlan inside = plan_jpeg(100, 80, {10, 20, 30, 40}, 1, 1, true);
  EXPECT_EQ(inside.decoded.x, 8);
  EXPECT_EQ(inside.decoded.y, 18);
  EXPECT_EQ(inside.decoded.width, 34);
  EXPECT_EQ(inside.decoded.height, 44);
  const JpegPlan corner = plan_jpeg(100, 80, {0, 40, 100, 40}, 1, 1, true);
  EXPECT_EQ(corner.decoded.x, 0);
  EXPECT_EQ(corner.decoded.width, 100);
  EXPECT_EQ(corner.decoded.height, 42);
}

TEST(PixelBufferTest, GivesAHugeBufferBackForASmallPicture) {
  PixelBuffer buffer;
  buffer.resize(8000, 4000);
  EXPECT_GT(buffer.capacity(), PixelBuffer::kKeepBytes);
  buffer.resize(500, 375);
  EXPECT_LT(buffer.capacity(), PixelBuffer::kKeepBytes);
}

TEST(PixelBufferTest, KeepsABufferOfUsualSize) {
  PixelBuffer buffer;
  buffer.resize(500, 375);
  const std::uint8_t* const memory = buffer.row(0);
  buffer.resize(10, 10);
  buffer.resize(500, 375);
  EXPECT_EQ(buffer.row(0), memory);
}

}  // namespace
}  // namespace infeed
