// Windows decoded from an entry point have the pixels of a whole decode, whatever the index says.

#include "decode/row_index.h"

#include <gtest/gtest.h>

#include <random>

#include "decode/decoder.h"
#include "decode/jpeg_maker.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::JpegColor;
using testing::JpegRecipe;
using testing::make_jpeg;
using testing::Sampling;

std::string pixels_of(const PixelWindow& window) {
  std::string pixels;
  for (int y = 0; y < window.height; ++y) {
    for (int x = 0; x < window.width; ++x)
      pixels.append(reinterpret_cast<const char*>(window.pixels + y * window.stride + std::ptrdiff_t{4} * x), 3);
  }
  return pixels;
}

class RowIndexTest : public ::testing::Test {
 protected:
  Window random_window(const ImageInfo& info) {
    const auto pick = [this](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
    const int w = pick(1, info.width), h = pick(1, std::min(info.height, 24));
    return {pick(0, info.width - w), pick(0, info.height - h), w, h};
  }

  /// The window, or the error's text; `index` gets what the decode passed.
  std::string decode(const Bytes& file, const Window& window, RowIndex* index) {
    try {
      decoder.open(file, {});
      if (index != nullptr) decoder.use_index(*index);
      return pixels_of(decoder.decode(window, 1, 1));
    } catch (const DecodeError& error) {
      return error.what();
    }
  }

  RowIndex whole_index(const Bytes& file) {
    RowIndex index;
    const ImageInfo info = decoder.open(file, {});
    static_cast<void>(decode(file, {0, 0, info.width, info.height}, &index));
    return index;
  }

  std::mt19937 random{20240819};
  Decoder decoder;
};

const Sampling kSamplings[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {1, 4}, {4, 2}};

JpegRecipe recipe_of(Sampling luma, std::uint64_t seed = 1) {
  return {.width = 150, .height = 203, .sampling = {luma}, .seed = seed};
}

TEST_F(RowIndexTest, KnowsEveryRowAfterAWholeDecode) {
  for (const Sampling luma : kSamplings) {
    const RowIndex index = whole_index(make_jpeg(recipe_of(luma)));
    EXPECT_TRUE(index.is_complete());
    EXPECT_EQ(index.num_stretches % ((203 + 8 * luma.v - 1) / (8 * luma.v)), 0);
  }
}

TEST_F(RowIndexTest, GivesEveryWindowTheSamePixels) {
  for (const Sampling luma : kSamplings) {
    const Bytes file = make_jpeg(recipe_of(luma));
    RowIndex index = whole_index(file);
    const RowIndex before = index;
    for (int i = 0; i < 60; ++i) {
      const Window window = random_window(decoder.open(file, {}));
      ASSERT_EQ(decode(file, window, &index), decode(file, window, nullptr)) << luma.h << "x" << luma.v;
    }
    EXPECT_EQ(index.entries, before.entries);
  }
}

// Their rows of 94 MCUs are cut into 10 stretches of 9 and one of 4.
TEST_F(RowIndexTest, ServesWidePictures) {
  JpegRecipe recipe = recipe_of({1, 1});
  recipe.width = 750;
  const Bytes file = make_jpeg(recipe);
  RowIndex index, whole = whole_index(file);
  EXPECT_EQ(whole.num_stretches, 11 * 26);
  for (int i = 0; i < 300; ++i) {
    Window window = random_window(decoder.open(file, {}));
    window.width = 1 + window.width / 4;
    const std::string want = decode(file, window, nullptr);
    ASSERT_EQ(decode(file, window, &index), want);
    ASSERT_EQ(decode(file, window, &whole), want);
    ASSERT_TRUE(std::equal(index.entries.begin(), index.entries.end(), whole.entries.begin()));
  }
}

TEST_F(RowIndexTest, GrowsWindowByWindow) {
  for (const Sampling luma : kSamplings) {
    const Bytes file = make_jpeg(recipe_of(luma, 7));
    RowIndex index;
    for (int i = 0; i < 60; ++i) {
      const std::size_t known = index.entries.size();
      const Window window = random_window(decoder.open(file, {}));
      ASSERT_EQ(decode(file, window, &index), decode(file, window, nullptr));
      EXPECT_GE(index.entries.size(), known);
    }
    const RowIndex whole = whole_index(file);
    EXPECT_TRUE(std::equal(index.entries.begin(), index.entries.end(), whole.entries.begin()));
  }
}

TEST_F(RowIndexTest, ServesGrayAndTurnedPictures) {
  JpegRecipe gray = recipe_of({2, 2});
  gray.color = JpegColor::kGray;
  for (const Bytes& file : {make_jpeg(gray), testing::with_exif(make_jpeg(recipe_of({2, 2})), {.orientation = 6})}) {
    RowIndex index = whole_index(file);
    EXPECT_TRUE(index.is_complete());
    for (int i = 0; i < 30; ++i) {
      const Window window = random_window(decoder.open(file, {}));
      ASSERT_EQ(decode(file, window, &index), decode(file, window, nullptr));
    }
  }
}

TEST_F(RowIndexTest, SaysWhichFilesHaveNone) {
  JpegRecipe progressive = recipe_of({2, 2}), restarts = progressive;
  progressive.progressive = true;
  restarts.restart_blocks = 5;
  for (const JpegRecipe& recipe : {progressive, restarts}) {
    const RowIndex index = whole_index(make_jpeg(recipe));
    EXPECT_TRUE(index.none && index.entries.empty()) << to_string(recipe);
  }
}

// The rows above the window are not read: damage there does not matter.
TEST_F(RowIndexTest, StartsLate) {
  Bytes file = make_jpeg(recipe_of({2, 2}));
  RowIndex index = whole_index(file);
  const Window low{20, 150, 60, 30};
  const std::string want = decode(file, low, nullptr);
  const std::size_t scan = decoder.head_bytes();
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(scan), 40, std::byte{0xFF});
  EXPECT_EQ(decode(file, low, &index), want);
  EXPECT_NE(decode(file, low, nullptr), want);
}

TEST_F(RowIndexTest, IgnoresDamagedEntryPoints) {
  const Bytes file = make_jpeg(recipe_of({2, 2}));
  const RowIndex good = whole_index(file);
  for (int round = 0; round < 4000; ++round) {
    RowIndex bad = good;
    if (random() % 4 == 0) bad.entries.resize(random() % good.entries.size());
    for (auto i = random() % 3; i > 0 && !bad.entries.empty(); --i) {
      EntryPoint& entry = bad.entries[random() % bad.entries.size()];
      const int what = static_cast<int>(random() % 4);
      if (what == 0) entry.offset += static_cast<std::uint32_t>(random() % 200) - 100;
      if (what == 1) entry.offset = static_cast<std::uint32_t>(random());
      if (what == 2) entry.bit = static_cast<std::uint8_t>(random() % 9);
      if (what == 3) entry.dc[random() % 3] ^= static_cast<std::int16_t>(1 << random() % 16);
    }
    if (random() % 8 == 0) bad.num_stretches += static_cast<int>(random() % 5) - 2;
    const Window window = random_window(decoder.open(file, {}));
    ASSERT_EQ(decode(file, window, &bad), decode(file, window, nullptr)) << "round " << round;
  }
}

TEST_F(RowIndexTest, IgnoresTheEntryPointsOfAnotherFile) {
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    const Bytes file = make_jpeg(recipe_of({2, 2}, seed)), other = make_jpeg(recipe_of({2, 2}, seed + 100));
    RowIndex index = whole_index(other);
    for (int i = 0; i < 20; ++i) {
      const Window window = random_window(decoder.open(file, {}));
      RowIndex given = index;
      ASSERT_EQ(decode(file, window, &given), decode(file, window, nullptr)) << "seed " << seed;
    }
  }
}

// Above the window damage is not seen; elsewhere it has the outcome that it has without an index.
TEST_F(RowIndexTest, GivesDamagedFilesNoPixelsOfItsOwn) {
  const Bytes good = make_jpeg(recipe_of({2, 2}));
  const RowIndex index = whole_index(good);
  const std::size_t scan = decoder.head_bytes();
  for (int round = 0; round < 3000; ++round) {
    Bytes file = good;
    file[scan + random() % (file.size() - scan)] = static_cast<std::byte>(random());
    const Window window = random_window(decoder.open(file, {}));
    RowIndex given = index;
    const std::string got = decode(file, window, &given);
    ASSERT_TRUE(got == decode(good, window, nullptr) || got == decode(file, window, nullptr)) << "round " << round;
  }
}

}  // namespace
}  // namespace infeed
