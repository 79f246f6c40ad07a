#include "infeed/dataset/image_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "conformance/dataset_conformance.h"
#include "dataset/image_reader.h"
#include "support/jpeg_bytes.h"
#include "support/temp_folder.h"

namespace infeed {

using testing::DatasetCase;
using testing::DatasetConformance;
using testing::jpeg_bytes;
using testing::read_sample;
using testing::TempFolder;

namespace {

/// Three classes, seven pictures of different sizes.
void fill(const TempFolder& folder) {
  for (int i = 0; i < 7; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) + ".jpg";
    folder.write(name, jpeg_bytes(40 + 5 * i, 30 + 3 * i, {20 * i, 100, 200}));
  }
}

const Compose kTrain{random_resized_crop(16), random_horizontal_flip(), normalize()};

ImageFolderOptions cached() {
  return {.transforms = kTrain,
          .decode = {.path = DecodePath::kPlanes},
          .cache = ImageCache::kPlanes,
          .cache_bytes = 1 << 20};
}

/// Nullopt: a DataError.
std::optional<testing::Sample> read_if_possible(const ImageFolder& dataset, std::int64_t index, std::uint64_t epoch) {
  try {
    return read_sample(dataset, index, 1, epoch);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

class ImageFolderTest : public ::testing::Test {
 protected:
  void SetUp() override { fill(folder); }
  ImageFolder open(ImageFolderOptions options = {.transforms = kTrain}) { return ImageFolder(folder.str(), options); }
  /// The text of the DataError that reading sample `index` gives.
  std::string failure(const ImageFolder& dataset, std::int64_t index) {
    try {
      static_cast<void>(read_sample(dataset, index));
    } catch (const DataError& error) {
      return error.what();
    }
    return "no DataError";
  }
  TempFolder folder;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_F(ImageFolderTest, ListsClassesAndFiles) {
  const ImageFolder dataset = open();
  EXPECT_EQ(dataset.size(), 7);
  EXPECT_EQ(dataset.classes(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(dataset.path(2), folder.str() + "/a/6.jpg");
  EXPECT_EQ(dataset.paths()[3], folder.str() + "/b/1.jpg");
  EXPECT_EQ(dataset.label(6), 2);
  EXPECT_EQ(dataset.describe(2), dataset.path(2));
}

TEST_F(ImageFolderTest, DeliversImageAndLabel) {
  const ImageFolder dataset = open();
  EXPECT_EQ(dataset.schema(), (Schema{{"image", DType::kFloat32, {3, 16, 16}}, {"label", DType::kInt64, {}}}));
  EXPECT_EQ(read_sample(dataset, 4)[1].values<std::int64_t>()[0], 1);
}

TEST_F(ImageFolderTest, DeliversPicturesOfTheirOwnSize) {
  const ImageFolder dataset = open({.label_dtype = DType::kInt32});
  EXPECT_TRUE(dataset.schema()[0].variable());
  const auto sample = read_sample(dataset, 1);
  EXPECT_EQ(sample[0].shape, (Shape{3, 39, 55}));
  EXPECT_EQ(sample[1].dtype, DType::kInt32);
}

TEST_F(ImageFolderTest, DeliversThePixelsOfTheFile) {
  const ImageFolder dataset = open({.transforms = {to_layout(ImageLayout::kHWC)}});
  const std::string file = jpeg_bytes(40, 30, {0, 100, 200});
  const Image image = decode_image(std::as_bytes(std::span(file)));
  EXPECT_EQ(read_sample(dataset, 0)[0].values<std::uint8_t>(), image.pixels);
}

TEST_F(ImageFolderTest, DrawsByEpoch) {
  const ImageFolder dataset = open();
  EXPECT_EQ(read_sample(dataset, 0, 1, 1), read_sample(dataset, 0, 1, 1));
  EXPECT_NE(read_sample(dataset, 0, 1, 1), read_sample(dataset, 0, 1, 2));
}

TEST_F(ImageFolderTest, ReportsItsTimes) {
  const ImageFolder dataset = open();
  RowGather gather(dataset.schema());
  StageTimes times;
  gather.start_batch();
  Row row = gather.start_row({0, 0, 0, &times});
  dataset.read(row);
  EXPECT_EQ(times.bytes_read, std::filesystem::file_size(dataset.path(0)));
  EXPECT_TRUE(times.read_ns > 0 && times.decode_ns > 0 && times.transform_ns > 0);
}

TEST_F(ImageFolderTest, NamesIndexPathAndCause) {
  folder.write("a/3.jpg", "not a picture");
  const std::string text = failure(open(), 1);
  EXPECT_TRUE(has(text, "sample 1") && has(text, folder.str() + "/a/3.jpg")) << text;
}

TEST_F(ImageFolderTest, ReadsTheRestAfterABrokenFile) {
  const ImageFolder dataset = open();
  const auto before = read_sample(dataset, 2);
  folder.write("a/3.jpg", jpeg_bytes(50, 40, {1, 2, 3}).substr(0, 700));
  EXPECT_NE(failure(dataset, 1), "no DataError");
  EXPECT_EQ(read_sample(dataset, 2), before);
}

TEST_F(ImageFolderTest, ReportsFilesThatVanishedOrAreEmpty) {
  const ImageFolder dataset = open();
  std::filesystem::remove(dataset.path(0));
  folder.write("a/3.jpg", "");
  EXPECT_TRUE(has(failure(dataset, 0), "No such file")) << failure(dataset, 0);
  EXPECT_NE(failure(dataset, 1), "no DataError");
}

TEST_F(ImageFolderTest, DoesNotWaitForPipesNorReadFolders) {
  const ImageFolder dataset = open();
  std::filesystem::remove(dataset.path(0));
  ASSERT_EQ(mkfifo(dataset.path(0).c_str(), 0600), 0);
  std::filesystem::remove(dataset.path(1));
  std::filesystem::create_directory(dataset.path(1));
  for (const std::int64_t index : {0, 1})
    EXPECT_TRUE(has(failure(dataset, index), "no regular file")) << failure(dataset, index);
}

TEST_F(ImageFolderTest, IsMadeFromItsRootAlone) {
  State params;
  params.set("root", folder.str());
  EXPECT_EQ(ImageFolder::from_params(params)->size(), 7);
}

TEST_F(ImageFolderTest, FindsItsListUnderAnotherDescriptor) {
  const ImageFolder dataset = open();
  auto spec = dataset.spec().value();
  const int other = dup(static_cast<int>(spec.params.get_ints("fds").at(0)));
  spec.params.set("fds", std::vector<std::int64_t>{other});
  spec.params.set("root", "/nowhere");
  EXPECT_EQ(ImageFolder::from_params(spec.params)->size(), dataset.size());
  close(other);
}

TEST_F(ImageFolderTest, TravelsWithPathsOfAnyBytes) {
  folder.write("r\xFF/c/0.jpg", jpeg_bytes(40, 30, {20, 100, 200}));
  const ImageFolder dataset(folder.str() + "/r\xFF", {.transforms = kTrain, .index_cache = folder.at("i\xFE")});
  const State params = State::from_json(dataset.spec()->params.to_json());
  const auto again = ImageFolder::from_params(params);
  EXPECT_EQ(again->path(0), dataset.path(0));
  EXPECT_EQ(read_sample(*again, 0), read_sample(dataset, 0));
}

TEST_F(ImageFolderTest, NoticesWhereTheFilesChanged) {
  const auto spec = open().spec().value();
  State params;
  for (const char* key : {"root"}) params.set(key, spec.params.get_string(key));
  params.set("digest", spec.params.get_uint("digest"));
  EXPECT_NO_THROW(static_cast<void>(ImageFolder::from_params(params)));
  folder.write("a/new.jpg", "");
  EXPECT_THROW(static_cast<void>(ImageFolder::from_params(params)), ConfigError);
}

TEST_F(ImageFolderTest, GivesTheSameWithACacheOfFilesThatAreDamagedBelow) {
  const std::string whole = jpeg_bytes(400, 300, {10, 100, 200});
  folder.write("a/3.jpg", whole.substr(0, whole.size() * 9 / 10));
  ImageFolderOptions options{.transforms = kTrain, .decode = {.path = DecodePath::kPlanes}};
  const ImageFolder plain = open(options), kept = open(cached());
  int read = 0;
  for (std::uint64_t epoch = 0; epoch < 40; ++epoch) {
    const auto expected = read_if_possible(plain, 1, epoch);
    EXPECT_EQ(read_if_possible(kept, 1, epoch), expected);
    read += expected ? 1 : 0;
  }
  EXPECT_TRUE(read > 3 && read < 40) << read;
  EXPECT_EQ(kept.cache_stats().pictures, 0);
}

TEST_F(ImageFolderTest, RefusesImpossibleOptions) {
  EXPECT_THROW(open({.label_dtype = DType::kFloat32}), ConfigError);
  EXPECT_THROW(open({.extensions = {}}), ConfigError);
  EXPECT_THROW(open({.extensions = {""}}), ConfigError);
  EXPECT_THROW(open({.cache = ImageCache::kPlanes, .cache_bytes = 1 << 20}), ConfigError);
  EXPECT_THROW(open({.cache_bytes = 1 << 20}), ConfigError);
  EXPECT_THROW(ImageFolder(folder.str() + "/missing"), ConfigError);
}

TEST(FileBuffer, GivesAGiantsMemoryBack) {
  const TempFolder folder;
  folder.write("giant", "\xFF\xD8\xFF" + std::string(20 << 20, 'x'));
  folder.write("small", "y");
  FileBuffer buffer;
  EXPECT_EQ(buffer.read(folder.at("giant")).size(), (20U << 20) + 3);
  EXPECT_EQ(buffer.read(folder.at("small")).size(), 1U);
  EXPECT_LT(buffer.capacity(), 1U << 20);
}

TEST(FileBuffer, DoesNotReadAGiantThatIsNoPicture) {
  const TempFolder folder;
  folder.write("archive.jpg", "PK");
  std::filesystem::resize_file(folder.at("archive.jpg"), 1U << 30);
  FileBuffer buffer;
  try {
    (void)buffer.read(folder.at("archive.jpg"));
    FAIL() << "read";
  } catch (const DecodeError& error) {
    EXPECT_TRUE(has(error.what(), "1073741824 bytes that begin with 50 4b")) << error.what();
  }
  EXPECT_EQ(buffer.capacity(), 0U);
}

/// A dataset and the folder it reads.
std::shared_ptr<const Dataset> make_folder(const ImageFolderOptions& options) {
  struct Owned {
    TempFolder folder;
    std::unique_ptr<ImageFolder> dataset;
  };
  auto owned = std::make_shared<Owned>();
  fill(owned->folder);
  owned->dataset = std::make_unique<ImageFolder>(owned->folder.str(), options);
  return {owned, owned->dataset.get()};
}

}  // namespace

namespace testing {
INSTANTIATE_TEST_SUITE_P(Image, DatasetConformance,
                         ::testing::Values(DatasetCase{"train", [] { return make_folder({.transforms = kTrain}); }},
                                           DatasetCase{"own_size", [] { return make_folder({}); }},
                                           DatasetCase{"cached", [] { return make_folder(cached()); }}));
}

}  // namespace infeed
