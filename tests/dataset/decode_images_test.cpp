#include "infeed/dataset/decode_images.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "support/jpeg_bytes.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::jpeg_bytes;
using testing::TempFolder;

const Compose kPlain{to_layout(ImageLayout::kHWC)};

/// Results by position, each in memory of its own.
struct Results {
  explicit Results(std::size_t count) : shapes(count), bytes(count) {}
  ImageStore store(std::size_t element_bytes = 1) {
    return [this, element_bytes](std::size_t i, const Shape& shape) {
      shapes[i] = shape;
      bytes[i].resize(static_cast<std::size_t>(shape.numel()) * element_bytes);
      return bytes[i].data();
    };
  }
  std::vector<Shape> shapes;
  std::vector<std::vector<std::byte>> bytes;
};

class DecodeImagesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (int i = 0; i < 7; ++i) pictures.push_back(jpeg_bytes(40 + 5 * i, 30 + 3 * i, {20 * i, 100, 200}));
    for (const auto& picture : pictures) sources.push_back({.path = {}, .bytes = std::as_bytes(std::span(picture))});
  }
  std::string failure(const DecodeImagesOptions& options) {
    Results results(sources.size());
    try {
      decode_images(sources, options, results.store());
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  std::vector<std::string> pictures;
  std::vector<ImageSource> sources;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(DecodeImagesTest, GivesThePixelsOfDecodeImage) {
  Results results(7);
  decode_images(sources, {.transforms = kPlain}, results.store());
  for (std::size_t i = 0; i < 7; ++i) {
    const Image image = decode_image(sources[i].bytes);
    EXPECT_EQ(results.shapes[i], Shape({image.height, image.width, 3}));
    EXPECT_EQ(std::memcmp(results.bytes[i].data(), image.pixels.data(), image.pixels.size()), 0);
  }
}

TEST_F(DecodeImagesTest, GivesTheSameForAnyNumberOfThreads) {
  const Compose chain{random_resized_crop(16), random_horizontal_flip(), normalize()};
  Results one(7), three(7), all(7);
  decode_images(sources, {.transforms = chain, .seed = 4}, one.store(4));
  decode_images(sources, {.transforms = chain, .threads = 3, .seed = 4}, three.store(4));
  decode_images(sources, {.transforms = chain, .threads = 0, .seed = 4}, all.store(4));
  EXPECT_EQ(one.bytes, three.bytes);
  EXPECT_EQ(one.bytes, all.bytes);
}

TEST_F(DecodeImagesTest, ReadsFiles) {
  const TempFolder folder;
  folder.write("a.jpg", pictures[2]);
  const std::vector<ImageSource> files{{.path = folder.str() + "/a.jpg", .bytes = {}}};
  Results from_file(1), from_bytes(1);
  decode_images(files, {.transforms = kPlain}, from_file.store());
  decode_images({&sources[2], 1}, {.transforms = kPlain}, from_bytes.store());
  EXPECT_EQ(from_file.bytes, from_bytes.bytes);
}

TEST_F(DecodeImagesTest, ThrowsTheFirstFailureByPosition) {
  sources[3].bytes = sources[3].bytes.first(100);
  sources[5].path = "/nonexistent.jpg";
  for (const int threads : {1, 2, 4}) EXPECT_TRUE(has(failure({.threads = threads}), "picture 3: truncated"));
  sources[1].path = "/nonexistent.jpg";
  EXPECT_TRUE(has(failure({.threads = 2}), "/nonexistent.jpg: cannot be opened"));
}

TEST_F(DecodeImagesTest, RefusesANegativeNumberOfThreads) {
  EXPECT_TRUE(has(failure({.threads = -1}), "threads is -1"));
}

TEST(DecodeImagesWithoutAnyTest, DoesNothing) { decode_images({}, {.threads = 0}, {}); }

}  // namespace
}  // namespace infeed
