// Pictures of every kind, by our decoder and by libjpeg: the same coefficients, and in any window the same pixels.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "decode/cmyk.h"
#include "decode/coefficients.h"
#include "decode/decoder.h"
#include "decode/jpeg.h"
#include "decode/jpeg_maker.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::JpegColor;
using testing::JpegRecipe;

/// R, G, B, unused of a whole picture by libjpeg's plainest route.
struct Whole {
  int width = 0, height = 0;
  std::vector<std::uint8_t> pixels;
};

Whole decode_whole(const JpegRecipe& recipe, const Bytes& file) {
  Whole whole{recipe.width, recipe.height, testing::decode_plainly(file)};
  const bool ink = recipe.color == JpegColor::kCMYK || recipe.color == JpegColor::kYCCK;
  if (ink) cmyk_to_rgbx(whole.pixels.data(), recipe.width * recipe.height);
  return whole;
}

Whole decode_whole(Decoder& decoder, const Bytes& file) {
  const ImageInfo info = decoder.open(file, {});
  const PixelWindow got = decoder.decode({0, 0, info.width, info.height}, 1, 1);
  Whole whole{info.width, info.height, {}};
  for (int y = 0; y < info.height; ++y) {
    const std::uint8_t* row = got.pixels + y * got.stride;
    whole.pixels.insert(whole.pixels.end(), row, row + std::ptrdiff_t{4} * info.width);
  }
  return whole;
}

Window random_window(std::mt19937_64& random, int width, int height) {
  const auto pick = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int w = pick(1, width), h = pick(1, height);
  return {pick(0, width - w), pick(0, height - h), w, h};
}

std::size_t differences(const PixelWindow& got, const Window& window, const Whole& whole) {
  std::size_t count = 0;
  for (int y = 0; y < window.height; ++y) {
    const std::uint8_t* a = got.pixels + (window.y - got.y0 + y) * got.stride + std::ptrdiff_t{4} * (window.x - got.x0);
    const std::uint8_t* b = &whole.pixels[static_cast<std::size_t>((window.y + y) * whole.width + window.x) * 4];
    for (int i = 0; i < 4 * window.width; ++i) count += i % 4 != 3 && a[i] != b[i];
  }
  return count;
}

std::string describe(const Window& w) {
  return std::to_string(w.width) + " x " + std::to_string(w.height) + " at " + std::to_string(w.x) + ", " +
         std::to_string(w.y);
}

TEST(SamenessTest, CoefficientsOfAnyPictureAreThoseOfLibjpeg) {
  testing::CoefficientReader ours;  // one for all: tables are kept from file to file
  std::vector<CoefficientBlock> libjpegs;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const JpegRecipe recipe = testing::random_recipe(seed);
    const Bytes file = make_jpeg(recipe);
    ASSERT_TRUE(ours.read(file)) << "seed " << seed << ": " << to_string(recipe);
    testing::read_by_libjpeg(file, &libjpegs);
    ASSERT_EQ(ours.blocks().size(), libjpegs.size());
    for (std::size_t i = 0; i < libjpegs.size(); ++i)
      ASSERT_EQ(std::memcmp(ours.blocks()[i].values, libjpegs[i].values, 128), 0)
          << "block " << i << ", seed " << seed << ": " << to_string(recipe);
  }
}

TEST(SamenessTest, CoefficientsOfWildFilesAreThoseOfLibjpeg) {
  testing::CoefficientReader ours;
  std::vector<CoefficientBlock> libjpegs;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Bytes file = testing::make_wild_jpeg(seed);
    ASSERT_TRUE(ours.read(file)) << seed;
    testing::read_by_libjpeg(file, &libjpegs);
    for (std::size_t i = 0; i < libjpegs.size(); ++i)
      ASSERT_EQ(std::memcmp(ours.blocks()[i].values, libjpegs[i].values, 128), 0) << "block " << i << ", seed " << seed;
  }
}

TEST(SamenessTest, FiveThousandRandomCropsHaveThePixelsOfLibjpegsFullDecode) {
  std::mt19937_64 random(5);
  Decoder decoder;
  for (std::uint64_t seed = 1000; seed < 1250; ++seed) {
    const JpegRecipe recipe = testing::random_recipe(seed);
    const Bytes file = make_jpeg(recipe);
    const Whole whole = decode_whole(recipe, file);
    for (int i = 0; i < 20; ++i) {
      const Window window = random_window(random, recipe.width, recipe.height);
      decoder.open(file, {});
      ASSERT_EQ(differences(decoder.decode(window, 1, 1), window, whole), 0U)
          << describe(window) << ", seed " << seed << ": " << to_string(recipe);
    }
  }
}

// The index is made by the windows themselves.
TEST(SamenessTest, CropsByAGrowingIndexHaveThem) {
  std::mt19937_64 random(6);
  Decoder decoder;
  for (std::uint64_t seed = 2000; seed < 2060; ++seed) {
    const JpegRecipe recipe = testing::random_recipe(seed);
    const Bytes file = make_jpeg(recipe);
    const Whole whole = decode_whole(recipe, file);
    RowIndex index;
    for (int i = 0; i < 20; ++i) {
      const Window window = random_window(random, recipe.width, recipe.height);
      decoder.open(file, {});
      decoder.use_index(index);
      ASSERT_EQ(differences(decoder.decode(window, 1, 1), window, whole), 0U)
          << describe(window) << ", seed " << seed << ": " << to_string(recipe);
    }
  }
}

TEST(SamenessTest, CropsOfTurnedPicturesAreThoseOfTheWholeTurned) {
  std::mt19937_64 random(7);
  Decoder decoder;
  for (std::uint64_t seed = 3000; seed < 3064; ++seed) {
    const int orientation = 1 + static_cast<int>(seed % 8);
    const Bytes file = testing::with_exif(make_jpeg(testing::random_recipe(seed)), {.orientation = orientation});
    const Whole whole = decode_whole(decoder, file);
    for (int i = 0; i < 10; ++i) {
      const Window window = random_window(random, whole.width, whole.height);
      decoder.open(file, {});
      ASSERT_EQ(differences(decoder.decode(window, 1, 1), window, whole), 0U)
          << describe(window) << ", orientation " << orientation << ", seed " << seed;
    }
  }
}

}  // namespace
}  // namespace infeed
