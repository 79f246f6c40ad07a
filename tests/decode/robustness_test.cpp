// Thousands of damaged and cut files: each decodes or is a DecodeError. Run it under the address sanitizer.

#include <gtest/gtest.h>

#include <random>

#include "decode/decoder.h"
#include "decode/jpeg_maker.h"
#include "decode/png_maker.h"

namespace infeed {
namespace {

using testing::Bytes;
using testing::JpegColor;
using testing::make_jpeg;
using testing::PngColor;
using testing::Sampling;

constexpr int kRoundsPerFile = 400;

std::vector<Bytes> good_files() {
  std::vector<Bytes> files;
  for (const Sampling luma : {Sampling{1, 1}, Sampling{2, 1}, Sampling{2, 2}, Sampling{1, 2}, Sampling{4, 1}}) {
    files.push_back(make_jpeg({.width = 83, .height = 61, .sampling = {luma}}));
  }
  files.push_back(make_jpeg({.sampling = {Sampling{2, 2}}, .progressive = true}));
  files.push_back(make_jpeg({.sampling = {Sampling{2, 2}}, .restart_blocks = 2}));
  files.push_back(make_jpeg({.sampling = {Sampling{2, 1}}, .arithmetic = true}));
  files.push_back(make_jpeg({.sampling = {Sampling{2, 1}}, .scans_apart = true}));
  files.push_back(make_jpeg({.color = JpegColor::kYCCK}));
  files.push_back(make_jpeg({.color = JpegColor::kGray}));
  files.push_back(testing::with_exif(make_jpeg({.sampling = {Sampling{2, 2}}}), {.orientation = 6}));
  files.push_back(testing::make_png({}).bytes);
  files.push_back(testing::make_png({.color = PngColor::kPalette, .bit_depth = 4, .interlaced = true}).bytes);
  return files;
}

class RobustnessTest : public ::testing::Test {
 protected:
  // A few bytes changed, most of them in the header, where they do most harm; sometimes cut, sometimes a piece doubled.
  Bytes damaged(Bytes file) {
    const std::size_t reach = below(2) == 0 ? std::min<std::size_t>(700, file.size()) : file.size();
    for (std::size_t i = below(6); i > 0; --i) file[below(reach)] = static_cast<std::byte>(random_());
    if (below(4) == 0) file.resize(1 + below(file.size()));
    if (below(6) == 0) {
      const Bytes piece(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(below(file.size())));
      file.insert(file.begin() + static_cast<std::ptrdiff_t>(below(file.size())), piece.begin(), piece.end());
    }
    return file;
  }

  // What came of it, so that a test can tell whether it saw both.
  void decode_some_window(const Bytes& file, bool lenient) {
    try {
      const DecodeOptions options{.exact = below(2) == 0, .allow_truncated = lenient, .max_pixels = 1 << 20};
      const ImageInfo info = decoder_.open(file, options);
      const Window w{static_cast<int>(below(static_cast<std::size_t>(info.width))),
                     static_cast<int>(below(static_cast<std::size_t>(info.height))), 1, 1};
      const int width = 1 + static_cast<int>(below(static_cast<std::size_t>(info.width - w.x)));
      const int height = 1 + static_cast<int>(below(static_cast<std::size_t>(info.height - w.y)));
      const PixelWindow& got = decoder_.decode({w.x, w.y, width, height}, 1 + width / 3, 1 + height / 3);
      for (int y = 0; y < got.height; ++y)
        sum_ += got.pixels[y * got.stride] + got.pixels[y * got.stride + got.width * 4 - 1];
      ++num_decoded_;
    } catch (const DecodeError& error) {
      EXPECT_GT(std::string_view(error.what()).size(), 20u);
      ++num_refused_;
    }
  }

  std::size_t below(std::size_t bound) { return bound == 0 ? 0 : random_() % bound; }

  std::mt19937_64 random_{42};
  Decoder decoder_;
  int num_decoded_ = 0;
  int num_refused_ = 0;
  std::uint64_t sum_ = 0;
};

TEST_F(RobustnessTest, DecodesOrRefusesDamagedFiles) {
  for (const Bytes& file : good_files()) {
    for (int i = 0; i < kRoundsPerFile; ++i) decode_some_window(damaged(file), false);
  }
  EXPECT_GT(num_decoded_, 300);
  EXPECT_GT(num_refused_, 1000);
}

TEST_F(RobustnessTest, DecodesOrRefusesDamagedFilesWhenLenient) {
  for (const Bytes& file : good_files()) {
    for (int i = 0; i < kRoundsPerFile; ++i) decode_some_window(damaged(file), true);
  }
  EXPECT_GT(num_decoded_, 1000);
  EXPECT_GT(num_refused_, 300);
}

TEST_F(RobustnessTest, DecodesOrRefusesFilesCutAtEveryByte) {
  const Bytes file = make_jpeg({.width = 40, .height = 24, .sampling = {Sampling{2, 2}}, .progressive = true});
  for (std::size_t size = 0; size <= file.size(); ++size) {
    decode_some_window(testing::first_bytes(file, size), size % 2 == 0);
  }
  EXPECT_GT(num_decoded_, 100);
}

}  // namespace
}  // namespace infeed
