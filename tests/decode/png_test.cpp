// PNG of every kind decodes to the RGB that was written; what is wrong with one comes out as the right fault.

#include <gtest/gtest.h>

#include <cstring>

#include "decode/decoder.h"
#include "decode/fault_of.h"
#include "decode/png_maker.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::fault_of;
using testing::make_png;
using testing::PngColor;
using testing::PngFile;
using testing::PngRecipe;

constexpr std::size_t kWidthOffset = 16;  // signature 8, chunk head 8

std::vector<PngRecipe> all_recipes() {
  std::vector<PngRecipe> recipes;
  const auto add = [&recipes](PngColor color, std::initializer_list<int> depths) {
    for (const int bits : depths) {
      for (const bool interlaced : {false, true}) {
        for (const bool transparent : {false, true}) {
          if (transparent && (color == PngColor::kGrayAlpha || color == PngColor::kRGBA)) continue;
          recipes.push_back({37, 29, color, bits, interlaced, transparent});
        }
      }
    }
  };
  add(PngColor::kGray, {1, 2, 4, 8, 16});
  add(PngColor::kGrayAlpha, {8, 16});
  add(PngColor::kPalette, {1, 2, 4, 8});
  add(PngColor::kRGB, {8, 16});
  add(PngColor::kRGBA, {8, 16});
  return recipes;
}

// Recomputes a chunk's checksum after its payload was changed.
void repair_header_checksum(Bytes& file) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (std::size_t i = 12; i < 29; ++i) {
    crc ^= std::to_integer<std::uint32_t>(file[i]);
    for (int k = 0; k < 8; ++k) crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  for (std::size_t i = 0; i < 4; ++i) file[29 + i] = static_cast<std::byte>(~crc >> (24 - 8 * i));
}

Bytes with_size(Bytes file, std::uint32_t width, std::uint32_t height) {
  for (std::size_t i = 0; i < 4; ++i) {
    file[kWidthOffset + i] = static_cast<std::byte>(width >> (24 - 8 * i));
    file[kWidthOffset + 4 + i] = static_cast<std::byte>(height >> (24 - 8 * i));
  }
  repair_header_checksum(file);
  return file;
}

TEST(PngTest, DecodesEveryKindToWhatWasWritten) {
  for (const PngRecipe& recipe : all_recipes()) {
    const PngFile file = make_png(recipe);
    EXPECT_EQ(decode_image(file.bytes).pixels, file.rgb) << to_string(recipe);
  }
}

TEST(PngTest, CutsWindowsOut) {
  Decoder decoder;
  for (const PngRecipe& recipe : all_recipes()) {
    const PngFile file = make_png(recipe);
    EXPECT_EQ(decoder.open(file.bytes, {}).format, ImageFormat::kPNG);
    const PixelWindow& window = decoder.decode({3, 5, 20, 11}, 4, 4);
    for (int y = 0; y < window.height; ++y) {
      for (int x = 0; x < window.width; ++x) {
        const std::uint8_t* wanted = &file.rgb[static_cast<std::size_t>(((y + 5) * 37 + x + 3) * 3)];
        ASSERT_EQ(std::memcmp(window.pixels + y * window.stride + x * 4, wanted, 3), 0) << to_string(recipe);
      }
    }
  }
}

TEST(PngTest, TurnsByItsExifChunk) {
  const PngFile file = make_png({.width = 20, .height = 10, .orientation = 6});
  const Image image = decode_image(file.bytes);
  EXPECT_EQ(image.width, 10);
  EXPECT_EQ(image.height, 20);
  EXPECT_EQ(std::memcmp(&image.pixels[27], file.rgb.data(), 3), 0);  // stored top left is seen top right
}

TEST(PngTest, CallsACutAnywhereTruncated) {
  for (const bool interlaced : {false, true}) {
    const Bytes file = make_png({.interlaced = interlaced}).bytes;
    for (std::size_t size = 1; size + 40 < file.size(); size += 1 + size / 8) {
      EXPECT_EQ(fault_of(testing::first_bytes(file, size)), DecodeFault::kTruncated) << size;
    }
  }
}

TEST(PngTest, KeepsTheRowsThatAreThereOnRequest) {
  const PngFile file = make_png({.width = 200, .height = 150});
  const Bytes half = testing::first_bytes(file.bytes, file.bytes.size() / 2);
  const Image image = decode_image(half, {.allow_truncated = true});
  EXPECT_EQ(std::memcmp(image.pixels.data(), file.rgb.data(), std::size_t{200} * 3 * 40), 0);
  EXPECT_EQ(image.pixels.back(), 128);
}

TEST(PngTest, CallsDamagedDataCorrupt) {
  Bytes file = make_png({}).bytes;
  file[file.size() / 2] ^= std::byte{0xFF};
  EXPECT_EQ(fault_of(file), DecodeFault::kCorrupt);
}

TEST(PngTest, CallsAnImpossibleHeaderBad) {
  Bytes file = make_png({}).bytes;
  EXPECT_EQ(fault_of(with_size(file, 0, 48)), DecodeFault::kBadHeader);
  file[24] = std::byte{7};  // bit depth
  repair_header_checksum(file);
  EXPECT_EQ(fault_of(file), DecodeFault::kBadHeader);
}

TEST(PngTest, RefusesMorePixelsThanAllowedOrThanTheBytesCanHold) {
  const Bytes file = with_size(make_png({}).bytes, 60'000, 60'000);
  EXPECT_EQ(fault_of(file), DecodeFault::kTooLarge);
  EXPECT_EQ(fault_of(file, {.max_pixels = std::int64_t{1} << 40}), DecodeFault::kTruncated);
}

}  // namespace
}  // namespace infeed
