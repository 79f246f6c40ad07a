#include "make_images.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <jpeglib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace demo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::ThrowsMessage;

class MakeImagesTest : public testing::Test {
 protected:
  MakeImagesTest() {
    std::string name = (fs::temp_directory_path() / "make_images_XXXXXX").string();
    box = ::mkdtemp(name.data());
  }
  ~MakeImagesTest() override { fs::remove_all(box); }

  ImageSetSummary make(const fs::path& root, int threads = 2, std::uint64_t seed = 1) const {
    return make_image_set({.root = root, .train = 10, .val = 10, .seed = seed, .threads = threads});
  }
  static std::string read(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static std::map<std::string, std::string> files_of(const fs::path& root) {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(root)) {
      if (entry.is_regular_file()) files[entry.path().lexically_relative(root).string()] = read(entry.path());
    }
    return files;
  }
  std::size_t entries_in_box() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(box), fs::directory_iterator()));
  }

  fs::path box;
};

// A set of 20 + 10 images for tests that only look.
class ImageSetTest : public MakeImagesTest {
 protected:
  static void SetUpTestSuite() {
    std::string name = (fs::temp_directory_path() / "image_set_XXXXXX").string();
    set = fs::path(::mkdtemp(name.data())) / "set";
    summary = make_image_set({.root = set, .train = 20, .val = 10, .threads = 2});
  }
  static void TearDownTestSuite() { fs::remove_all(set.parent_path()); }

  inline static fs::path set;
  inline static ImageSetSummary summary;
};

struct JpegFacts {
  unsigned width = 0, height = 0;
  int components = 0, h_samp = 0, v_samp = 0;
  long warnings = 0;
};

// libjpeg's own error handler ends the program: a failure here is loud.
JpegFacts decode(const std::string& bytes) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr error{};
  info.err = jpeg_std_error(&error);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  jpeg_read_header(&info, TRUE);
  jpeg_start_decompress(&info);
  std::vector<unsigned char> line(std::size_t{info.output_width} * 3);
  while (info.output_scanline < info.output_height) {
    unsigned char* row = line.data();
    jpeg_read_scanlines(&info, &row, 1);
  }
  const JpegFacts facts{info.image_width,
                        info.image_height,
                        info.num_components,
                        info.comp_info->h_samp_factor,
                        info.comp_info->v_samp_factor,
                        error.num_warnings};
  jpeg_destroy_decompress(&info);
  return facts;
}

TEST_F(ImageSetTest, DealsTheImagesToTenClasses) {
  ASSERT_EQ(summary.classes.size(), 10U);
  EXPECT_TRUE(std::is_sorted(summary.classes.begin(), summary.classes.end()));
  for (const std::string& name : summary.classes) {
    EXPECT_TRUE(fs::exists(set / "train" / name / "00000.jpg")) << name;
    EXPECT_TRUE(fs::exists(set / "train" / name / "00001.jpg")) << name;
    EXPECT_TRUE(fs::exists(set / "val" / name / "00000.jpg")) << name;
  }
  EXPECT_EQ(files_of(set).size(), 31U);  // and the marker
}

TEST_F(ImageSetTest, HoldsWholeJpegsOfTheUsualSize) {
  for (const auto& [name, bytes] : files_of(set)) {
    if (fs::path(name).extension() != ".jpg") continue;
    const JpegFacts facts = decode(bytes);
    EXPECT_EQ(facts.warnings, 0) << name;
    EXPECT_EQ(facts.components, 3) << name;
    EXPECT_EQ(facts.h_samp * facts.v_samp, 4) << name << ": not 4:2:0";
    EXPECT_NEAR(facts.width * facts.height, 500 * 375, 20'000) << name;
    EXPECT_GE(bytes.size(), 80'000U) << name;
    EXPECT_LE(bytes.size(), 120'000U) << name;
  }
}

TEST_F(ImageSetTest, HoldsNoPictureTwice) {
  std::map<std::string, std::string> name_of;
  for (const auto& [name, bytes] : files_of(set)) EXPECT_TRUE(name_of.emplace(bytes, name).second) << name;
}

TEST_F(ImageSetTest, HoldsTheSameBytesWithAnyNumberOfThreads) {
  make_image_set({.root = box / "three", .train = 20, .val = 10, .threads = 3});
  EXPECT_EQ(files_of(set), files_of(box / "three"));
}

TEST_F(ImageSetTest, HoldsTheImagesOfASmallerSet) {
  make_image_set({.root = box / "less", .train = 10, .val = 0});
  EXPECT_EQ(read(set / "train/dots/00000.jpg"), read(box / "less/train/dots/00000.jpg"));
}

TEST_F(MakeImagesTest, IsMadeOnce) {
  const ImageSetSummary first = make(box / "set");
  const auto written = fs::last_write_time(box / "set/train/dots/00000.jpg");
  const ImageSetSummary second = make(box / "set/");
  EXPECT_FALSE(first.reused);
  EXPECT_TRUE(second.reused);
  EXPECT_EQ(first.total_bytes, second.total_bytes);
  EXPECT_EQ(first.min_bytes, second.min_bytes);
  EXPECT_EQ(written, fs::last_write_time(box / "set/train/dots/00000.jpg"));
}

TEST_F(MakeImagesTest, IsMadeAgainWithOtherOptionsOrIfAFileIsMissing) {
  make(box / "set");
  EXPECT_FALSE(make(box / "set", 2, 5).reused);
  fs::remove(box / "set/val/rings/00000.jpg");
  EXPECT_FALSE(make(box / "set", 2, 5).reused);
  EXPECT_TRUE(make(box / "set", 2, 5).reused);
  EXPECT_EQ(entries_in_box(), 1U);
}

TEST_F(MakeImagesTest, RemovesWhatAKilledRunLeft) {
  fs::create_directories(box / "set.partial-1234-0/train");
  make(box / "set");
  EXPECT_EQ(entries_in_box(), 1U);
}

TEST_F(MakeImagesTest, FillsAnEmptyFolderAndMakesParents) {
  fs::create_directories(box / "empty");
  EXPECT_FALSE(make(box / "empty").reused);
  EXPECT_FALSE(make(box / "a/b/set").reused);
}

TEST_F(MakeImagesTest, NeverTouchesAFolderOfOthers) {
  fs::create_directories(box / "photos");
  std::ofstream(box / "photos/mine.jpg") << "precious";
  EXPECT_THAT([&] { make(box / "photos"); }, ThrowsMessage<ImageSetError>(HasSubstr("is not an image set")));
  EXPECT_EQ(read(box / "photos/mine.jpg"), "precious");
  EXPECT_EQ(entries_in_box(), 1U);
}

TEST_F(MakeImagesTest, NamesAFolderThatCannotBeMade) {
  std::ofstream(box / "file") << "x";
  EXPECT_THAT([&] { make(box / "file/set"); }, ThrowsMessage<ImageSetError>(HasSubstr("cannot make the folder")));
  EXPECT_THAT([&] { make("/proc/nowhere/set"); }, ThrowsMessage<ImageSetError>(HasSubstr("/proc/nowhere")));
}

TEST_F(MakeImagesTest, LeavesNothingBehindWhenWritingFails) {
  struct rlimit before {};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  struct rlimit small {
    40'000, before.rlim_max
  };
  ::setrlimit(RLIMIT_FSIZE, &small);
  EXPECT_THAT([&] { make(box / "a/set"); }, ThrowsMessage<ImageSetError>(HasSubstr("cannot write")));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(entries_in_box(), 0U);
}

TEST_F(MakeImagesTest, ReportsProgressToTheEnd) {
  int last = 0, total = 0;
  make_image_set({.root = box / "set", .train = 10, .val = 0}, [&](int done, int of) { last = done, total = of; });
  EXPECT_EQ(last, 10);
  EXPECT_EQ(total, 10);
}

TEST_F(MakeImagesTest, StopsWhenProgressThrows) {
  const auto refuse = [](int, int) { throw std::runtime_error("enough"); };
  EXPECT_THROW(make_image_set({.root = box / "set", .train = 400}, refuse), std::runtime_error);
  EXPECT_EQ(entries_in_box(), 0U);
}

TEST_F(MakeImagesTest, RefusesCountsThatMakeNoSense) {
  EXPECT_THROW(make_image_set({.root = box / "set", .train = -1}), ImageSetError);
  EXPECT_THROW(make_image_set({.root = box / "set", .train = 0, .val = 0}), ImageSetError);
  EXPECT_THROW(make_image_set({}), ImageSetError);
}

}  // namespace
}  // namespace demo
