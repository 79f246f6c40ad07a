// Every window of every kind of JPEG has the pixels of a full decode, bit for bit.

#include <gtest/gtest.h>

#include <random>

#include "decode/cmyk.h"
#include "decode/decoder.h"
#include "decode/jpeg_maker.h"

namespace infeed {
namespace {

using testing::JpegColor;
using testing::JpegRecipe;
using testing::Sampling;

struct Size {
  int width, height;
};

constexpr Size kSizes[] = {{1, 1},    {7, 5},    {8, 8},    {16, 16},  {17, 33},  {33, 17}, {40, 2},
                           {2, 40},   {64, 48},  {100, 75}, {131, 97}, {500, 3},  {3, 300}, {240, 181},
                           {97, 131}, {129, 65}, {31, 250}, {255, 16}, {257, 33}, {48, 63}};

struct Kind {
  const char* name;
  JpegRecipe recipe;
};

JpegRecipe ycc(Sampling y, Sampling cb = {}, Sampling cr = {}) { return {.sampling = {y, cb, cr, Sampling{}}}; }

std::vector<Kind> samplings() {
  return {{"444", ycc({1, 1})},
          {"422", ycc({2, 1})},
          {"420", ycc({2, 2})},
          {"440", ycc({1, 2})},
          {"411", ycc({4, 1})},
          {"441", ycc({1, 4})},
          {"410", ycc({4, 2})},
          {"2x4", ycc({2, 4})},
          {"422as2x2and1x2", ycc({2, 2}, {1, 2}, {1, 2})},
          {"440as2x2and2x1", ycc({2, 2}, {2, 1}, {2, 1})},
          {"CbWideCrTall", ycc({2, 2}, {2, 1}, {1, 2})},
          {"ChromaFinerThanLuma", ycc({1, 1}, {2, 2}, {2, 1})},
          {"3x1", ycc({3, 1})},
          {"1x3", ycc({1, 3})},
          {"Gray", {.color = JpegColor::kGray}},
          {"Gray2x2", {.color = JpegColor::kGray, .sampling = {Sampling{2, 2}}}},
          {"Rgb", {.color = JpegColor::kRGB}},
          {"Cmyk", {.color = JpegColor::kCMYK}},
          {"Ycck", {.color = JpegColor::kYCCK}},
          {"Ycck420", {.color = JpegColor::kYCCK, .sampling = {Sampling{2, 2}, {}, {}, Sampling{2, 2}}}}};
}

void add_variants(std::vector<Kind>& kinds, const char* name, void (*change)(JpegRecipe&)) {
  static std::vector<std::string> names;
  names.reserve(1000);
  for (Kind kind : samplings()) {
    names.push_back(std::string(kind.name) + name);
    kind.name = names.back().c_str();
    change(kind.recipe);
    kinds.push_back(kind);
  }
}

std::vector<Kind> all_kinds() {
  std::vector<Kind> kinds = samplings();
  add_variants(kinds, "Progressive", [](JpegRecipe& r) { r.progressive = true; });
  add_variants(kinds, "UnfinishedProgressive", [](JpegRecipe& r) { r.progressive = true, r.progressive_scans = 4; });
  add_variants(kinds, "ScansApart", [](JpegRecipe& r) { r.scans_apart = true; });
  add_variants(kinds, "Restart", [](JpegRecipe& r) { r.restart_blocks = 3; });
  add_variants(kinds, "Arithmetic", [](JpegRecipe& r) { r.arithmetic = true; });
  return kinds;
}

class WindowTest : public ::testing::TestWithParam<Kind> {
 protected:
  Window random_window(int width, int height) {
    const auto pick = [this](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); };
    const int w = pick(1, width), h = pick(1, height);
    return {pick(0, width - w), pick(0, height - h), w, h};
  }

  // Pixels that differ between what `window` holds and the whole picture, `full_width` wide.
  static int differences(const PixelWindow& window, const std::vector<std::uint8_t>& full) {
    int count = 0;
    for (int y = 0; y < window.height; ++y) {
      const std::uint8_t* got = window.pixels + y * window.stride;
      const std::uint8_t* want =
          full.data() + (static_cast<std::size_t>(window.y0 + y) * static_cast<std::size_t>(window.full_width) +
                         static_cast<std::size_t>(window.x0)) *
                            4;
      for (int x = 0; x < window.width; ++x) {
        for (int c = 0; c < 3; ++c) count += got[x * 4 + c] != want[x * 4 + c];
      }
    }
    return count;
  }

  static std::vector<std::uint8_t> whole(const testing::Bytes& file, const JpegRecipe& recipe, int scale_num) {
    std::vector<std::uint8_t> pixels = testing::decode_plainly(file, scale_num);
    const bool ink = recipe.color == JpegColor::kCMYK || recipe.color == JpegColor::kYCCK;
    if (ink) cmyk_to_rgbx(pixels.data(), static_cast<int>(pixels.size() / 4));
    return pixels;
  }

  Decoder decoder_;
  std::mt19937 random_{20240607};
};

TEST_P(WindowTest, HasThePixelsOfAFullDecode) {
  for (const Size size : kSizes) {
    JpegRecipe recipe = GetParam().recipe;
    recipe.width = size.width;
    recipe.height = size.height;
    const testing::Bytes file = testing::make_jpeg(recipe);
    const std::vector<std::uint8_t> full = whole(file, recipe, 8);
    decoder_.open(file, {});
    for (int i = 0; i < 40; ++i) {
      const Window w = random_window(size.width, size.height);
      ASSERT_EQ(differences(decoder_.decode(w, 1, 1), full), 0)
          << to_string(recipe) << ", window " << w.width << " x " << w.height << " at " << w.x << ", " << w.y;
    }
  }
}

TEST_P(WindowTest, HasThePixelsOfAScaledFullDecodeWhereAScaleIsAllowed) {
  for (const Size size : kSizes) {
    JpegRecipe recipe = GetParam().recipe;
    recipe.width = size.width;
    recipe.height = size.height;
    const testing::Bytes file = testing::make_jpeg(recipe);
    decoder_.open(file, {.exact = false});
    for (int i = 0; i < 12; ++i) {
      const Window w = random_window(size.width, size.height);
      const int divisor = 2 << i % 3;
      const PixelWindow& got = decoder_.decode(w, w.width / divisor, w.height / divisor);
      ASSERT_EQ(differences(got, whole(file, recipe, got.scale_num)), 0)
          << to_string(recipe) << ", scale " << got.scale_num << "/8, window " << w.width << " x " << w.height << " at "
          << w.x << ", " << w.y;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, WindowTest, ::testing::ValuesIn(all_kinds()),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace infeed
