// The decoder of our own against libjpeg: the same pixels, the same refusals, and which files it takes.

#include "decode/baseline.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>

#include "decode/jpeg.h"
#include "decode/jpeg_handle.h"
#include "decode/jpeg_maker.h"
#include "infeed/decode/decode.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::JpegColor;
using testing::JpegRecipe;
using testing::make_jpeg;
using testing::Sampling;

JpegRecipe with_luma(Sampling luma) { return {.width = 83, .height = 61, .sampling = {luma}}; }

/// The whole picture by the decoder alone; nullopt: it leaves the file to libjpeg.
std::optional<std::vector<std::uint8_t>> decode_alone(const Bytes& file) {
  JpegHandle handle{};
  EXPECT_TRUE(jpeg_open(handle, file, true));
  BaselineDecoder decoder;
  PixelBuffer buffer;
  const int width = static_cast<int>(handle.codec.image_width), height = static_cast<int>(handle.codec.image_height);
  const std::span<const std::byte> coded = std::span(file).last(handle.source.bytes_in_buffer);
  const bool taken = decoder.decode(handle.codec, coded, {0, 0, width, height}, buffer);
  jpeg_close(handle);
  if (!taken) return std::nullopt;
  std::vector<std::uint8_t> pixels;
  for (int y = 0; y < height; ++y)
    pixels.insert(pixels.end(), buffer.row(y), buffer.row(y) + std::ptrdiff_t{4} * width);
  return pixels;
}

TEST(BaselineDecoderTest, TakesOrdinaryFilesOfAllSamplings) {
  for (const Sampling luma : {Sampling{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {1, 4}, {4, 2}}) {
    EXPECT_EQ(decode_alone(make_jpeg(with_luma(luma))), testing::decode_plainly(make_jpeg(with_luma(luma))));
  }
  EXPECT_TRUE(decode_alone(make_jpeg({.color = JpegColor::kGray})));
}

TEST(BaselineDecoderTest, LeavesWhatIsNotBaselineToLibjpeg) {
  for (const JpegRecipe& recipe :
       {JpegRecipe{.progressive = true}, JpegRecipe{.arithmetic = true}, JpegRecipe{.scans_apart = true},
        JpegRecipe{.color = JpegColor::kRGB}, JpegRecipe{.color = JpegColor::kCMYK}}) {
    EXPECT_FALSE(decode_alone(make_jpeg(recipe))) << to_string(recipe);
  }
}

TEST(BaselineDecoderTest, EqualsLibjpegAtEveryQuality) {
  std::mt19937 random(3);
  for (int quality = 1; quality <= 100; ++quality) {
    JpegRecipe recipe = with_luma(quality % 2 == 0 ? Sampling{2, 2} : Sampling{1, 1});
    recipe.quality = quality;
    recipe.width = 1 + static_cast<int>(random() % 300);
    recipe.height = 1 + static_cast<int>(random() % 300);
    recipe.restart_blocks = quality % 3 == 0 ? 1 + static_cast<int>(random() % 9) : 0;
    recipe.seed = static_cast<std::uint64_t>(quality);
    const Bytes file = make_jpeg(recipe);
    ASSERT_EQ(decode_alone(file), testing::decode_plainly(file)) << to_string(recipe) << " quality " << quality;
  }
}

TEST(BaselineDecoderTest, EqualsLibjpegOnCoefficientsThatNoEncoderMakes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Bytes file = testing::make_wild_jpeg(seed);
    const auto alone = decode_alone(file);
    ASSERT_TRUE(alone) << seed;
    ASSERT_EQ(*alone, testing::decode_plainly(file)) << "seed " << seed;
  }
}

TEST(BaselineDecoderTest, RefusesAScanWithStrayMarkersOrWrongRestarts) {
  JpegRecipe recipe = with_luma({2, 2});
  recipe.restart_blocks = 4;
  Bytes file = make_jpeg(recipe);
  for (std::size_t at = testing::find_segment(file, 0xDA); at + 1 < file.size(); ++at) {
    if (file[at] == std::byte{0xFF} && file[at + 1] == std::byte{0xD1}) file[at + 1] = std::byte{0xD5};
  }
  EXPECT_FALSE(decode_alone(file));
}

// Of the tables' codes only some exist: those that do not may stand at a block's end.
TEST(BaselineDecoderTest, LeavesACodeThatDoesNotExistToLibjpeg) {
  Bytes file = make_jpeg(with_luma({1, 1}));
  const std::size_t scan = testing::find_segment(file, 0xDA) + 14;  // FF DA, length 12, its payload
  const std::byte ones[] = {std::byte{0xFF}, std::byte{0},    std::byte{0xFF},
                            std::byte{0},    std::byte{0xFF}, std::byte{0}};
  std::copy(std::begin(ones), std::end(ones), file.begin() + static_cast<std::ptrdiff_t>(scan) + 40);
  EXPECT_FALSE(decode_alone(file));
}

/// A window, or the error's text.
std::string outcome(JpegSource& source, const Bytes& file, const DecodeOptions& options) {
  try {
    const StoredInfo info = source.open(file, options);
    PixelBuffer buffer;
    const Window window{info.width / 3, info.height / 3, 1 + info.width / 2, 1 + info.height / 2};
    const PixelWindow got = source.decode(window, 1, 1, buffer);
    std::string bytes;
    for (int y = 0; y < got.height; ++y) {
      for (int x = 0; x < got.width; ++x)
        bytes.append(reinterpret_cast<const char*>(got.pixels + y * got.stride + 4 * x), 3);
    }
    return bytes;
  } catch (const DecodeError& error) {
    return error.what();
  }
}

TEST(BaselineDecoderTest, GivesDamagedFilesTheOutcomeOfLibjpeg) {
  std::mt19937 random(11);
  JpegSource ours, libjpegs(true);
  for (int round = 0; round < 3000; ++round) {
    Bytes file = make_jpeg({.width = 48, .height = 40, .sampling = {Sampling{1 + round % 2, 1 + round / 2 % 2}}});
    for (unsigned i = random() % 4; i > 0; --i) file[random() % file.size()] = static_cast<std::byte>(random());
    if (random() % 3 == 0) file.resize(1 + random() % file.size());
    const DecodeOptions options{.allow_truncated = round % 2 == 0, .max_pixels = 1 << 20};
    ASSERT_EQ(outcome(ours, file, options), outcome(libjpegs, file, options)) << "round " << round;
  }
}

}  // namespace
}  // namespace infeed
