// An index fills while epochs are read, serves the next ones, and never changes a pixel.

#include "dataset/index_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "base/hash.h"
#include "decode/jpeg_maker.h"
#include "infeed/base/log.h"
#include "infeed/dataset/image_folder.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::all_crews;
using testing::Crew;
using testing::rest_of_epoch;
using testing::TempFolder;

using Sums = std::vector<std::uint64_t>;
constexpr int kPictures = 12;

std::string picture(std::uint64_t seed, bool progressive = false) {
  const auto bytes = testing::make_jpeg(
      {.width = 200, .height = 260, .sampling = {testing::Sampling{2, 2}}, .progressive = progressive, .seed = seed});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class IndexCacheTest : public ::testing::TestWithParam<Crew> {
 protected:
  void SetUp() override {
    for (int i = 0; i < kPictures; ++i) data.write(name(i), picture(static_cast<std::uint64_t>(i), i == 5));
    set_log_sink([this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) warnings.emplace_back(text);
    });
  }
  void TearDown() override { set_log_sink({}); }

  static std::string name(int i) {
    return std::string(1, static_cast<char>('a' + i % 3)) + "/" + std::to_string(i) + ".jpg";
  }
  [[nodiscard]] ImageFolder folder(const std::string& place, bool whole = false) const {
    const Compose transforms = whole ? Compose{resize(16, 16)} : Compose{random_resized_crop(16), normalize()};
    return ImageFolder(data.str(), {.transforms = transforms, .index_cache = place});
  }
  static Sums epochs(const ImageFolder& dataset, const Crew& crew, int count = 3, std::uint64_t first = 0) {
    Loader loader(dataset, {.batch_size = 5, .seed = 3, .num_workers = crew.workers, .worker_kind = crew.kind});
    loader.set_epoch(first);
    Sums sums;
    for (int i = 0; i < count; ++i) {
      for (const std::uint64_t sum : rest_of_epoch(loader)) sums.push_back(sum);
    }
    return sums;
  }
  /// Samples whose index is complete, as the next run will find it.
  [[nodiscard]] std::int64_t num_complete() const {
    std::vector<std::uint64_t> names;
    for (int i = 0; i < kPictures; ++i) names.push_back(hash64(name(i)));
    return IndexCache::open(index, names)->num_complete();
  }
  /// Overwrites the first coded bytes, which no window below needs; size and time stay.
  void damage_the_top(int i) {
    const std::string path = data.at(name(i));
    struct stat before {};
    ASSERT_EQ(stat(path.c_str(), &before), 0);
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    file.seekp(static_cast<std::streamoff>(bytes.find("\xFF\xDA") + 30));
    file << std::string(20, '\xFF');
    file.close();
    const timespec times[2] = {before.st_atim, before.st_mtim};
    ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(cache.str())) names.push_back(entry.path().filename());
    return names;
  }

  TempFolder data, cache;
  std::string index = cache.at("x.index");
  std::vector<std::string> warnings;
};

TEST_P(IndexCacheTest, GivesTheSameBatchesAsTheIndexGrows) {
  const Sums want = epochs(folder(""), GetParam());
  EXPECT_EQ(epochs(folder(index), GetParam()), want);
  EXPECT_EQ(epochs(folder(index), GetParam()), want) << "with what the run before learned";
  EXPECT_EQ(files(), std::vector<std::string>{"x.index"});
  EXPECT_TRUE(warnings.empty());
}

TEST_P(IndexCacheTest, IsCompleteAfterWholePictures) {
  static_cast<void>(epochs(folder(index, true), GetParam(), 1));
  EXPECT_EQ(num_complete(), kPictures);
}

TEST_P(IndexCacheTest, ServesTheNextEpochOfTheSameRun) {
  const ImageFolder dataset = folder(index);
  Loader loader(dataset,
                {.batch_size = 1, .seed = 3, .num_workers = GetParam().workers, .worker_kind = GetParam().kind});
  const Sums first = rest_of_epoch(loader);
  for (int i = 0; i < kPictures; ++i) damage_the_top(i);
  loader.set_epoch(0);
  int served = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    try {
      served += testing::checksum(*loader.next()) == first[i] ? 1 : 0;
    } catch (const DataError&) {
    }
  }
  EXPECT_GE(served, kPictures / 3) << "windows below the damage";
}

INSTANTIATE_TEST_SUITE_P(Crews, IndexCacheTest, ::testing::ValuesIn(all_crews({2})),
                         [](const auto& crew) { return crew.param.name(); });

class OneIndexTest : public IndexCacheTest {};
INSTANTIATE_TEST_SUITE_P(Inline, OneIndexTest, ::testing::Values(Crew{}));

TEST_P(OneIndexTest, IsRebuiltWhereFilesAreReplaced) {
  static_cast<void>(epochs(folder(index, true), {}, 1));
  for (int i = 0; i < kPictures; i += 2) data.write(name(i), picture(static_cast<std::uint64_t>(100 + i)));
  EXPECT_EQ(epochs(folder(index), {}), epochs(folder(""), {}));
  static_cast<void>(epochs(folder(index, true), {}, 1));
  EXPECT_EQ(num_complete(), kPictures);
}

TEST_P(OneIndexTest, IsRebuiltWhereItIsDamaged) {
  const Sums want = epochs(folder(""), {});
  for (const std::size_t size : {std::size_t{0}, std::size_t{30}, std::size_t{64}, std::size_t{500}}) {
    static_cast<void>(epochs(folder(index, true), {}, 1));
    std::filesystem::resize_file(index, size);
    EXPECT_EQ(epochs(folder(index), {}), want) << size;
  }
  EXPECT_TRUE(warnings.empty());
}

TEST_P(OneIndexTest, ReplacesNoOtherFile) {
  const std::string path = data.at(name(3)), bytes = picture(3);
  EXPECT_EQ(epochs(folder(path), {}), epochs(folder(""), {}));
  EXPECT_EQ(warnings.size(), 1U);
  std::ifstream file(path, std::ios::binary);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), bytes);
}

TEST_P(OneIndexTest, MayBeCutUnderARunThatReadsIt) {
  static_cast<void>(epochs(folder(index, true), {}, 1));
  const ImageFolder dataset = folder(index);
  std::filesystem::resize_file(index, 100);
  EXPECT_EQ(epochs(dataset, {}), epochs(folder(""), {}));
}

TEST_P(OneIndexTest, WarnsOnceWhereItCannotBeWritten) {
  const Sums want = epochs(folder(""), {});
  for (const std::string& place : {cache.at("none") + "/x.index", data.at(name(0)) + "/x.index", cache.str()}) {
    warnings.clear();
    EXPECT_EQ(epochs(folder(place), {}), want) << place;
    EXPECT_EQ(warnings.size(), 1U) << place;
  }
}

/// What `run` returned in a child process, or minus the signal that killed it.
template <typename Run>
int in_a_child(const Run& run) {
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST_P(OneIndexTest, WarnsOnceWhereTheDiskIsFull) {
  const Sums want = epochs(folder(""), {}, 1);
  EXPECT_EQ(in_a_child([&] {
              const ImageFolder dataset = folder(index);
              Loader loader(dataset, {.batch_size = 5, .seed = 3, .num_workers = 0});
              const rlimit limit{600, 600};
              setrlimit(RLIMIT_FSIZE, &limit);
              return rest_of_epoch(loader) == want && warnings.size() == 1 ? 0 : 1;
            }),
            0);
  EXPECT_EQ(epochs(folder(index), {}, 1), want);
}

TEST_P(OneIndexTest, KeepsWhatAKilledRunLearned) {
  for (const Crew crew : {Crew{}, Crew{WorkerKind::kFork, 2}}) {
    EXPECT_EQ(in_a_child([&] {
                const ImageFolder dataset = folder(index, true);
                static_cast<void>(epochs(dataset, crew, 1));
                return raise(SIGKILL);
              }),
              -SIGKILL);
    EXPECT_EQ(files().size(), 1U) << "the part, or the index and no part";
    EXPECT_EQ(num_complete(), kPictures);
    EXPECT_EQ(files(), std::vector<std::string>{"x.index"});
    std::filesystem::remove(index);
  }
}

TEST_P(OneIndexTest, IsSharedByRunsAtTheSameTime) {
  const Sums want = epochs(folder(""), {});
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(epochs(folder(index), {}) == want ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_GT(num_complete(), 0);
  EXPECT_EQ(files(), std::vector<std::string>{"x.index"});
}

TEST_P(OneIndexTest, IsInTheCacheFolderWhereItIsAutomatic) {
  setenv("XDG_CACHE_HOME", cache.str().c_str(), 1);
  static_cast<void>(epochs(folder("auto", true), {}, 1));
  unsetenv("XDG_CACHE_HOME");
  EXPECT_EQ(files(), std::vector<std::string>{"infeed"});
}

TEST_P(OneIndexTest, NeedsNoPartWhereNothingIsLeftToLearn) {
  static_cast<void>(epochs(folder(index, true), {}, 1));
  const ImageFolder dataset = folder(index);
  EXPECT_EQ(files(), std::vector<std::string>{"x.index"});
}

}  // namespace
}  // namespace infeed
