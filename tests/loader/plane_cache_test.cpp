// The cache of planes under every kind of worker: the rows stay what they were, bit for bit.

#include <gtest/gtest.h>

#include <csignal>

#include "infeed/dataset/image_folder.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"
#include "support/jpeg_bytes.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

using testing::Crew;
using testing::rest_of_epoch;

constexpr int kNumFiles = 40;

const testing::TempFolder& folder() {
  static const testing::TempFolder files;
  static const bool filled = [] {
    for (int i = 0; i < kNumFiles; ++i)
      files.write("class/" + std::to_string(100 + i) + ".jpg",
                  testing::jpeg_bytes(90 + 7 * (i % 5), 70 + 3 * (i % 7), {i, 3 * i, 200}));
    return true;
  }();
  static_cast<void>(filled);
  return files;
}

ImageFolderOptions options(std::uint64_t cache_bytes) {
  ImageFolderOptions all{.transforms = {random_resized_crop(32), random_horizontal_flip(), normalize()}};
  all.decode.path = DecodePath::kPlanes;
  all.cache = cache_bytes > 0 ? ImageCache::kPlanes : ImageCache::kNone;
  all.cache_bytes = cache_bytes;
  return all;
}

LoaderOptions crew_options(const Crew& crew) {
  return {.batch_size = 7, .shuffle = true, .seed = 5, .num_workers = crew.workers, .worker_kind = crew.kind};
}

class PlaneCacheLoaderTest : public ::testing::TestWithParam<Crew> {
 protected:
  /// Checksums of three epochs.
  std::vector<std::vector<std::uint64_t>> epochs(const ImageFolder& dataset) {
    Loader loader(dataset, crew_options(GetParam()));
    return {rest_of_epoch(loader), rest_of_epoch(loader), rest_of_epoch(loader)};
  }
  static ImageFolder open(std::uint64_t cache_bytes) { return ImageFolder(folder().str(), options(cache_bytes)); }
};

TEST_P(PlaneCacheLoaderTest, ChangesNoBit) {
  const ImageFolder dataset = open(4 << 20);
  EXPECT_EQ(epochs(dataset), epochs(open(0)));
  const ImageCacheStats stats = dataset.cache_stats();
  EXPECT_EQ(stats.pictures, kNumFiles);
  EXPECT_EQ(stats.hits, 2 * kNumFiles);
}

TEST_P(PlaneCacheLoaderTest, ServesWhatFitsItsBudget) {
  const ImageFolder dataset = open(200'000);
  EXPECT_EQ(epochs(dataset), epochs(open(0)));
  const ImageCacheStats stats = dataset.cache_stats();
  EXPECT_LE(stats.bytes, 200'000);
  EXPECT_GT(stats.pictures, 5);
  EXPECT_EQ(stats.hits, 2 * stats.pictures);
}

TEST_P(PlaneCacheLoaderTest, OutlivesKilledWorkers) {
  if (GetParam().kind != WorkerKind::kFork && GetParam().kind != WorkerKind::kSpawn) GTEST_SKIP() << "no processes";
  const ImageFolder dataset = open(4 << 20);
  LoaderOptions mortal = crew_options(GetParam());
  mortal.max_restarts = 3;
  Loader loader(dataset, std::move(mortal));
  const auto expected = epochs(open(0));
  for (const auto& epoch : expected) {
    const auto first = loader.next();
    ASSERT_TRUE(first);
    EXPECT_EQ(testing::checksum(*first), epoch[0]);
    kill(static_cast<pid_t>(loader.stats().workers[0].pid), SIGKILL);
    EXPECT_EQ(rest_of_epoch(loader), std::vector<std::uint64_t>(epoch.begin() + 1, epoch.end()));
  }
  EXPECT_GE(dataset.cache_stats().pictures, kNumFiles - 3);  // each death may cost the one that was being written
}

INSTANTIATE_TEST_SUITE_P(Crews, PlaneCacheLoaderTest, ::testing::ValuesIn(testing::all_crews({2})),
                         [](const auto& crew) { return crew.param.name(); });

}  // namespace
}  // namespace infeed
