// Pictures are turned as their EXIF says; windows are those of the turned picture.

#include "decode/orientation.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "decode/exif.h"
#include "decode/jpeg_header.h"
#include "decode/jpeg_maker.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::make_jpeg;
using testing::Sampling;
using testing::with_exif;

constexpr int kWidth = 75;  // as stored
constexpr int kHeight = 50;

// Where the pixel seen at (x, y) stands in the stored picture, from the definition in the EXIF standard.
struct Point {
  int x, y;
};
Point stored_point(int orientation, int x, int y) {
  switch (orientation) {
    case 2: return {kWidth - 1 - x, y};
    case 3: return {kWidth - 1 - x, kHeight - 1 - y};
    case 4: return {x, kHeight - 1 - y};
    case 5: return {y, x};
    case 6: return {y, kHeight - 1 - x};
    case 7: return {kWidth - 1 - y, kHeight - 1 - x};
    case 8: return {kWidth - 1 - y, x};
    default: return {x, y};
  }
}

class OrientationTest : public ::testing::TestWithParam<int> {
 protected:
  OrientationTest()
      : plain_(make_jpeg({.width = kWidth, .height = kHeight, .sampling = {Sampling{2, 2}}})),
        stored_(testing::decode_plainly(plain_)) {}

  // Pixels of `window` that are not where the orientation puts them.
  [[nodiscard]] int misplaced(const PixelWindow& window, int orientation) const {
    int count = 0;
    for (int y = 0; y < window.height; ++y) {
      for (int x = 0; x < window.width; ++x) {
        const Point from = stored_point(orientation, window.x0 + x, window.y0 + y);
        const auto offset = static_cast<std::size_t>((from.y * kWidth + from.x) * 4);
        count += std::memcmp(window.pixels + y * window.stride + x * 4, &stored_[offset], 3) != 0;
      }
    }
    return count;
  }

  Bytes plain_;
  std::vector<std::uint8_t> stored_;
  Decoder decoder_;
};

TEST_P(OrientationTest, TurnsEveryWindow) {
  const int orientation = GetParam();
  const Bytes file = with_exif(plain_, {.orientation = orientation});
  const ImageInfo info = decoder_.open(file, {});
  EXPECT_EQ(info.orientation, orientation);
  EXPECT_EQ(info.width, swaps_axes(orientation) ? kHeight : kWidth);
  std::mt19937 random(static_cast<unsigned>(orientation));
  const auto pick = [&random](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  for (int i = 0; i < 100; ++i) {
    const int w = pick(1, info.width), h = pick(1, info.height);
    const Window window{pick(0, info.width - w), pick(0, info.height - h), w, h};
    const PixelWindow& got = decoder_.decode(window, w, h);
    ASSERT_EQ(got.x0, window.x);
    ASSERT_EQ(got.height, h);
    ASSERT_EQ(misplaced(got, orientation), 0);
  }
}

TEST_P(OrientationTest, IsLeftAloneOnRequest) {
  const Bytes file = with_exif(plain_, {.orientation = GetParam()});
  const ImageInfo info = decoder_.open(file, {.orient = false});
  EXPECT_EQ(info.orientation, 1);
  EXPECT_EQ(misplaced(decoder_.decode({0, 0, kWidth, kHeight}, 1, 1), 1), 0);
}

TEST_P(OrientationTest, IsFoundInBothByteOrdersAndBehindOtherSegments) {
  for (const bool big_endian : {false, true}) {
    for (const bool behind : {false, true}) {
      const Bytes file = with_exif(plain_, {GetParam(), big_endian, behind});
      EXPECT_EQ(probe_image(file).orientation, GetParam());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OrientationTest, ::testing::Range(1, 9));

TEST(ExifTest, TakesValuesOutOfRangeForOne) {
  for (const int value : {0, 9, 255, 65535}) {
    EXPECT_EQ(probe_image(with_exif(make_jpeg({}), {.orientation = value})).orientation, 1);
  }
}

TEST(ExifTest, TakesACutBlockForOne) {
  const Bytes file = with_exif(make_jpeg({}), {.orientation = 6});
  const std::span<const std::byte> whole = scan_jpeg_header(file).exif;
  ASSERT_EQ(tiff_orientation(whole), 6);
  for (std::size_t size = 0; size < 8 + 2 + 24; ++size) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(tiff_orientation(cut), 1) << size;
  }
}

TEST(ExifTest, NeverReadsOutsideOfADamagedBlock) {
  const Bytes file = with_exif(make_jpeg({}), {.orientation = 6});
  const std::span<const std::byte> whole = scan_jpeg_header(file).exif;
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    Bytes damaged(whole.begin(), whole.end());
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<std::byte>(random());
    const int orientation = tiff_orientation(damaged);
    ASSERT_TRUE(orientation >= 1 && orientation <= 8);
  }
}

TEST(ExifTest, IgnoresWhatStandsBehindTheFirstScan) {
  const Bytes plain = make_jpeg({});
  Bytes file = plain;
  const Bytes turned = with_exif(plain, {.orientation = 6});
  file.insert(file.end(), turned.begin() + 2, turned.end());
  EXPECT_EQ(probe_image(file).orientation, 1);
}

}  // namespace
}  // namespace infeed
