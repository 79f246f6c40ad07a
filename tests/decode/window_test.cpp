// Every window of every kind of JPEG has the pixels of a full decode, bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
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
  std::string name;
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
          {"CbWiderThanLuma", ycc({2, 2}, {4, 1})},
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
  for (Kind kind : samplings()) {
    kind.name += name;
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

const std::vector<std::uint8_t>& drawing(Size size) {
  static std::map<std::pair<int, int>, std::vector<std::uint8_t>> drawings;
  std::vector<std::uint8_t>& rgb = drawings[{size.width, size.height}];
  if (rgb.empty()) rgb = testing::draw(size.width, size.height, 12, 1);
  return rgb;
}

class WindowTest : public ::testing::TestWithParam<Kind> {
 protected:
  void open(Size size, const DecodeOptions& options) {
    recipe_ = GetParam().recipe;
    recipe_.width = size.width;
    recipe_.height = size.height;
    file_ = testing::make_jpeg(recipe_, drawing(size));
    whole_.clear();
    decoder_.open(file_, options);
  }

  Window random_window(int width, int height) {
    const auto pick = [this](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); };
    const int w = pick(1, width), h = pick(1, height);
    return {pick(0, width - w), pick(0, height - h), w, h};
  }

  // Values that differ between the window and the whole picture decoded plainly at the same scale.
  int differences(const PixelWindow& window) {
    const std::vector<std::uint8_t>& full = whole(window.scale_num);
    int count = 0;
    for (int y = 0; y < window.height; ++y) {
      const std::uint8_t* got = window.pixels + y * window.stride;
      const std::uint8_t* want = &full[static_cast<std::size_t>((window.y0 + y) * window.full_width + window.x0) * 4];
      for (int x = 0; x < window.width; ++x) {
        for (int c = 0; c < 3; ++c) count += got[x * 4 + c] != want[x * 4 + c];
      }
    }
    return count;
  }

  [[nodiscard]] std::string describe(const Window& w) const {
    return to_string(recipe_) + ", window " + std::to_string(w.width) + " x " + std::to_string(w.height) + " at " +
           std::to_string(w.x) + ", " + std::to_string(w.y);
  }

 private:
  const std::vector<std::uint8_t>& whole(int scale_num) {
    std::vector<std::uint8_t>& pixels = whole_[scale_num];
    if (!pixels.empty()) return pixels;
    pixels = testing::decode_plainly(file_, scale_num);
    const bool ink = recipe_.color == JpegColor::kCMYK || recipe_.color == JpegColor::kYCCK;
    if (ink) cmyk_to_rgbx(pixels.data(), static_cast<int>(pixels.size() / 4));
    return pixels;
  }

 protected:
  Decoder decoder_;

 private:
  JpegRecipe recipe_;
  testing::Bytes file_;
  std::map<int, std::vector<std::uint8_t>> whole_;  // by scale
  std::mt19937 random_{20240607};
};

TEST_P(WindowTest, HasThePixelsOfAFullDecode) {
  for (const Size size : kSizes) {
    open(size, {});
    for (int i = 0; i < 20; ++i) {
      const Window w = random_window(size.width, size.height);
      ASSERT_EQ(differences(decoder_.decode(w, 1, 1)), 0) << describe(w);
    }
  }
}

TEST_P(WindowTest, HasThePixelsOfAFullDecodeWhereItIsNarrow) {
  for (const Size size : {Size{24, 17}, Size{70, 33}}) {
    open(size, {});
    for (int i = 0; i < 3 * size.width; ++i) {
      const int x = i / 3;
      const Window w{x, x % 7, std::min(1 + i % 3, size.width - x), 8};
      ASSERT_EQ(differences(decoder_.decode(w, 1, 1)), 0) << describe(w);
    }
  }
}

TEST_P(WindowTest, HasThePixelsOfAScaledFullDecodeWhereAScaleIsAllowed) {
  for (const Size size : kSizes) {
    open(size, {.exact = false});
    for (int i = 0; i < 6; ++i) {
      const Window w = random_window(size.width, size.height);
      const int divisor = 2 << i % 3;
      ASSERT_EQ(differences(decoder_.decode(w, w.width / divisor, w.height / divisor)), 0) << describe(w);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, WindowTest, ::testing::ValuesIn(all_kinds()),
                         [](const auto& kind) { return kind.param.name; });

}  // namespace
}  // namespace infeed
