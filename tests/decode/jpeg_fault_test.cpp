// What is wrong with a JPEG comes out as the right fault; what is only odd decodes.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "decode/decoder.h"
#include "decode/fault_of.h"
#include "decode/jpeg_maker.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::fault_of;
using testing::JpegColor;
using testing::JpegRecipe;
using testing::make_jpeg;
using testing::Sampling;

constexpr std::uint8_t kQuantTable = 0xDB;
constexpr std::uint8_t kBaselineFrame = 0xC0;
constexpr std::uint8_t kStartOfScan = 0xDA;

JpegRecipe photo() { return {.width = 160, .height = 120, .sampling = {Sampling{2, 2}}}; }

std::vector<JpegRecipe> ways_to_code() {
  std::vector<JpegRecipe> recipes(5, photo());
  recipes[1].progressive = true;
  recipes[2].scans_apart = true;
  recipes[3].restart_blocks = 4;
  recipes[4].arithmetic = true;
  return recipes;
}

Bytes without_segment(Bytes file, std::uint8_t marker) {
  const std::size_t at = testing::find_segment(file, marker);
  const std::size_t length =
      std::to_integer<std::size_t>(file[at + 2]) << 8 | std::to_integer<std::size_t>(file[at + 3]);
  file.erase(file.begin() + static_cast<std::ptrdiff_t>(at),
             file.begin() + static_cast<std::ptrdiff_t>(at + 2 + length));
  return file;
}

// The frame header from its marker: | FF C0 | length | precision | height | width | components ...
Bytes with_frame_byte(Bytes file, std::size_t offset, int value) {
  file[testing::find_segment(file, kBaselineFrame) + offset] = static_cast<std::byte>(value);
  return file;
}

Bytes with_size(Bytes file, int width, int height) {
  file = with_frame_byte(file, 5, height >> 8);
  file = with_frame_byte(file, 6, height & 0xFF);
  file = with_frame_byte(file, 7, width >> 8);
  return with_frame_byte(file, 8, width & 0xFF);
}

Bytes joined(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The file with its last scan and the tables before it `times` times in a row.
Bytes with_last_scan_repeated(const Bytes& file, int times) {
  std::size_t last = file.size() - 2;
  while (file[last] != std::byte{0xFF} || file[last + 1] != std::byte{kStartOfScan}) --last;
  Bytes repeated = testing::first_bytes(file, last);
  for (int i = 0; i < times; ++i)
    repeated.insert(repeated.end(), file.begin() + static_cast<std::ptrdiff_t>(last), file.end() - 2);
  return joined(repeated, {std::byte{0xFF}, std::byte{0xD9}});
}

TEST(JpegFaultTest, CallsNoBytesEmpty) { EXPECT_EQ(fault_of({}), DecodeFault::kEmpty); }

TEST(JpegFaultTest, CallsTextNotAnImage) {
  EXPECT_EQ(fault_of(testing::bytes_of("<html>404</html>")), DecodeFault::kNotAnImage);
}

TEST(JpegFaultTest, CallsTheBeginningOfASignatureTruncated) {
  for (const std::size_t size : {1u, 2u}) {
    EXPECT_EQ(fault_of(testing::first_bytes(make_jpeg({}), size)), DecodeFault::kTruncated);
  }
}

TEST(JpegFaultTest, CallsACutAnywhereTruncated) {
  for (const JpegRecipe& recipe : ways_to_code()) {
    const Bytes file = make_jpeg(recipe);
    for (std::size_t size = 1; size + 40 < file.size(); size += 1 + size / 8) {
      EXPECT_EQ(fault_of(testing::first_bytes(file, size)), DecodeFault::kTruncated)
          << to_string(recipe) << " cut at " << size << " of " << file.size();
    }
  }
}

TEST(JpegFaultTest, CallsAnEndMarkerThatComesEarlyTruncated) {
  const Bytes half = testing::first_bytes(make_jpeg(photo()), 3000);
  EXPECT_EQ(fault_of(joined(half, {std::byte{0xFF}, std::byte{0xD9}})), DecodeFault::kTruncated);
}

TEST(JpegFaultTest, NamesRowAndByteOfACut) {
  std::string text;
  const Bytes file = testing::first_bytes(make_jpeg(photo()), 4000);
  ASSERT_EQ(fault_of(file, {}, &text), DecodeFault::kTruncated);
  EXPECT_NE(text.find("of 120"), std::string::npos) << text;
  EXPECT_NE(text.find("byte 4000 of 4000"), std::string::npos) << text;
  EXPECT_NE(text.find("allow_truncated"), std::string::npos) << text;
}

TEST(JpegFaultTest, DecodesWithoutTheEndMarker) {
  for (const JpegRecipe& recipe : ways_to_code()) {
    if (recipe.arithmetic) continue;  // its code cannot tell this from lost data
    const Bytes file = make_jpeg(recipe);
    EXPECT_EQ(fault_of(testing::first_bytes(file, file.size() - 2)), std::nullopt) << to_string(recipe);
  }
}

TEST(JpegFaultTest, DecodesWithBytesBehindTheEndMarker) {
  for (const JpegRecipe& recipe : ways_to_code()) {
    EXPECT_EQ(fault_of(joined(make_jpeg(recipe), Bytes(5000, std::byte{0x5A}))), std::nullopt) << to_string(recipe);
  }
}

TEST(JpegFaultTest, DecodesWithStrayAndFillBytesBetweenSegments) {
  Bytes file = make_jpeg(photo());
  const auto frame = static_cast<std::ptrdiff_t>(testing::find_segment(file, kBaselineFrame));
  file.insert(file.begin() + frame, {std::byte{0x31}, std::byte{0x00}, std::byte{0xFF}, std::byte{0xFF}});
  EXPECT_EQ(fault_of(file), std::nullopt);
}

TEST(JpegFaultTest, DoesNotReadBelowTheWindow) {
  const Bytes file = make_jpeg(photo());
  const Bytes half = testing::first_bytes(file, file.size() / 2);
  Decoder decoder;
  decoder.open(half, {});
  EXPECT_NO_THROW(decoder.decode({0, 0, 160, 24}, 160, 24));
  EXPECT_THROW(decoder.decode({0, 90, 160, 24}, 160, 24), DecodeError);
}

TEST(JpegFaultTest, KeepsTheRowsThatAreThereOnRequest) {
  const Bytes file = make_jpeg(photo());
  const Image whole = decode_image(file);
  const Image part = decode_image(testing::first_bytes(file, file.size() / 2), {.allow_truncated = true});
  constexpr std::size_t kRowBytes = 160 * 3;
  EXPECT_EQ(std::memcmp(whole.pixels.data(), part.pixels.data(), 40 * kRowBytes), 0);
  EXPECT_TRUE(std::all_of(part.pixels.end() - 40 * kRowBytes, part.pixels.end(), [](int v) { return v == 128; }));
}

TEST(JpegFaultTest, KeepsTheScansThatAreThereOnRequest) {
  JpegRecipe recipe = photo();
  recipe.progressive = true;
  const Bytes file = make_jpeg(recipe);
  EXPECT_EQ(fault_of(testing::first_bytes(file, file.size() / 2), {.allow_truncated = true}), std::nullopt);
}

TEST(JpegFaultTest, CallsADamagedRestartMarkerCorrupt) {
  JpegRecipe recipe = photo();
  recipe.restart_blocks = 4;
  Bytes file = make_jpeg(recipe);
  for (std::size_t i = 0; i + 1 < file.size(); ++i) {
    if (file[i] == std::byte{0xFF} && file[i + 1] == std::byte{0xD3}) file[i + 1] = std::byte{0xD7};
  }
  EXPECT_EQ(fault_of(file), DecodeFault::kCorrupt);
}

TEST(JpegFaultTest, CallsAFileWithoutQuantTablesBadAlsoAfterAGoodOne) {
  Decoder decoder;
  const Bytes good = make_jpeg(photo());
  Bytes bad = without_segment(good, kQuantTable);
  bad = without_segment(bad, kQuantTable);
  decoder.open(good, {});
  decoder.decode({0, 0, 160, 120}, 160, 120);
  EXPECT_THROW(
      {
        decoder.open(bad, {});
        decoder.decode({0, 0, 160, 120}, 160, 120);
      },
      DecodeError);
  EXPECT_EQ(fault_of(bad), DecodeFault::kBadHeader);
}

TEST(JpegFaultTest, CallsZeroSizesBad) {
  EXPECT_EQ(fault_of(with_size(make_jpeg({}), 0, 48)), DecodeFault::kBadHeader);
  EXPECT_EQ(fault_of(with_size(make_jpeg({}), 64, 0)), DecodeFault::kBadHeader);
}

TEST(JpegFaultTest, CallsImpossibleSamplingBad) {
  EXPECT_EQ(fault_of(with_frame_byte(make_jpeg({}), 11, 0x00)), DecodeFault::kBadHeader);
  EXPECT_EQ(fault_of(with_frame_byte(make_jpeg({}), 11, 0x51)), DecodeFault::kBadHeader);
}

TEST(JpegFaultTest, CallsTwelveBitsAndLosslessUnsupported) {
  EXPECT_EQ(fault_of(with_frame_byte(make_jpeg({}), 4, 12)), DecodeFault::kUnsupported);
  EXPECT_EQ(fault_of(with_frame_byte(make_jpeg({}), 1, 0xC3)), DecodeFault::kUnsupported);
}

TEST(JpegFaultTest, RefusesMorePixelsThanAllowed) {
  std::string text;
  EXPECT_EQ(fault_of(make_jpeg(photo()), {.max_pixels = 160 * 120}), std::nullopt);
  EXPECT_EQ(fault_of(make_jpeg(photo()), {.max_pixels = 160 * 120 - 1}, &text), DecodeFault::kTooLarge);
  EXPECT_NE(text.find("160 x 120"), std::string::npos) << text;
}

TEST(JpegFaultTest, RefusesMorePixelsThanTheBytesCanHold) {
  const DecodeOptions trusting{.max_pixels = std::int64_t{1} << 40};
  for (JpegRecipe recipe : ways_to_code()) {
    if (recipe.arithmetic || recipe.progressive) continue;  // other frame markers
    EXPECT_EQ(fault_of(with_size(make_jpeg(recipe), 65500, 65500), trusting), DecodeFault::kTruncated);
  }
  EXPECT_EQ(fault_of(with_size(make_jpeg({}), 65500, 65500)), DecodeFault::kTooLarge);
}

TEST(JpegFaultTest, DecodesAFlatPictureOfFewBytes) {
  JpegRecipe recipe{.width = 3000, .height = 2000, .sampling = {Sampling{2, 2}}};
  const std::vector<std::uint8_t> flat(std::size_t{3000} * 2000 * 3, 200);
  for (const bool progressive : {false, true}) {
    recipe.progressive = progressive;
    EXPECT_EQ(fault_of(make_jpeg(recipe, flat)), std::nullopt);
  }
}

TEST(JpegFaultTest, StopsAtMoreScansThanAnyEncoderWrites) {
  JpegRecipe recipe{.progressive = true};
  std::string text;
  const Bytes bomb = with_last_scan_repeated(make_jpeg(recipe), 2000);
  EXPECT_EQ(fault_of(bomb), DecodeFault::kCorrupt);
  EXPECT_EQ(fault_of(bomb, {.allow_truncated = true}, &text), DecodeFault::kCorrupt);
  EXPECT_NE(text.find("scans"), std::string::npos) << text;
}

TEST(JpegFaultTest, DecodesAfterAnError) {
  Decoder decoder;
  const Bytes file = make_jpeg(photo());
  const Bytes cut = testing::first_bytes(file, file.size() / 2);
  for (int i = 0; i < 3; ++i) {
    decoder.open(cut, {});
    EXPECT_THROW(decoder.decode({0, 0, 160, 120}, 160, 120), DecodeError);
    decoder.open(file, {});
    EXPECT_NO_THROW(decoder.decode({0, 0, 160, 120}, 160, 120));
  }
}

}  // namespace
}  // namespace infeed
