#include "dataset/plane_cache.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <thread>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "support/child.h"
#include "support/temp_folder.h"

namespace infeed {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

/// Owns a picture whose samples tell its seed and place.
class Picture {
 public:
  explicit Picture(int seed, int width = 61, int height = 47, int spread_x = 2, int spread_y = 2, int num_planes = 3) {
    planes = {num_planes, {}, spread_x, spread_y, width, height};
    for (int p = 0; p < num_planes; ++p) {
      const int w = p == 0 ? width : (width + spread_x - 1) / spread_x;
      const int h = p == 0 ? height : (height + spread_y - 1) / spread_y;
      auto& bytes = bytes_[static_cast<std::size_t>(p)];
      const std::size_t stride = static_cast<std::size_t>(w) + 7;
      bytes.resize(stride * static_cast<std::size_t>(h));
      for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(seed * 31 + p * 5 + static_cast<int>(i));
      planes.planes[static_cast<std::size_t>(p)] = {bytes.data(), static_cast<std::ptrdiff_t>(stride), 0, 0, w, h};
    }
  }
  PlaneWindow planes;

 private:
  std::array<std::vector<std::uint8_t>, 3> bytes_;
};

bool equal(const SamplePlane& a, const SamplePlane& b) {
  if (a.width != b.width || a.height != b.height) return false;
  for (int y = 0; y < a.height; ++y)
    if (!std::equal(a.samples + y * a.stride, a.samples + y * a.stride + a.width, b.samples + y * b.stride))
      return false;
  return true;
}

bool equal(const PlaneWindow& a, const PlaneWindow& b) {
  if (a.num_planes != b.num_planes || a.width != b.width || a.height != b.height) return false;
  if (a.spread_x != b.spread_x || a.spread_y != b.spread_y) return false;
  for (std::size_t p = 0; p < static_cast<std::size_t>(a.num_planes); ++p)
    if (!equal(a.planes[p], b.planes[p])) return false;
  return true;
}

class PlaneCacheTest : public ::testing::Test {
 protected:
  static std::unique_ptr<PlaneCache> make(std::int64_t num_samples, std::uint64_t bytes) {
    return PlaneCache::create({.num_samples = num_samples, .bytes = bytes});
  }
  void put(PlaneCache& cache, std::int64_t index, const Picture& picture) { cache.put(index, picture.planes, scratch); }
  static bool has(const PlaneCache& cache, std::int64_t index, const Picture& picture) {
    const auto found = cache.find(index);
    return found && equal(*found, picture.planes);
  }
  std::vector<std::byte> scratch;
};

TEST_F(PlaneCacheTest, GivesBackWhatWasPutIn) {
  const auto cache = make(5, kMiB);
  const Picture all[]{Picture(1), Picture(2, 8, 9, 1, 1), Picture(3, 33, 1, 2, 1), Picture(4, 1, 1, 1, 2),
                      Picture(5, 100, 30, 1, 1, 1)};
  for (int i = 0; i < 5; ++i) put(*cache, i, all[i]);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(has(*cache, i, all[i])) << i;
  EXPECT_EQ(cache->stats().pictures, 5);
  EXPECT_EQ(cache->stats().hits, 5);
}

TEST_F(PlaneCacheTest, KeepsTheFirstOfASample) {
  const auto cache = make(2, kMiB);
  EXPECT_TRUE(cache->wants(1, 61, 47));
  put(*cache, 1, Picture(1));
  put(*cache, 1, Picture(2));
  EXPECT_FALSE(cache->wants(1, 61, 47));
  EXPECT_TRUE(has(*cache, 1, Picture(1)));
  EXPECT_FALSE(cache->find(0));
}

TEST_F(PlaneCacheTest, KeepsItsBudget) {
  const std::uint64_t budget = kMiB + 12345;
  const auto cache = make(1000, budget);
  for (int i = 0; i < 1000; ++i) put(*cache, i, Picture(i, 61 + i % 9, 47));
  EXPECT_FALSE(cache->wants(999, 61, 47));
  EXPECT_LE(cache->stats().bytes_used, budget);
  struct stat status {};
  ASSERT_EQ(fstat(cache->fd(), &status), 0);
  EXPECT_LE(static_cast<std::uint64_t>(status.st_blocks) * 512, budget);
  std::uint64_t kept = 0;
  for (int i = 0; i < 1000; ++i) kept += has(*cache, i, Picture(i, 61 + i % 9, 47)) ? 1 : 0;
  EXPECT_EQ(kept, cache->stats().pictures);
  EXPECT_GT(kept, 200);
}

TEST_F(PlaneCacheTest, IsSeenThroughItsDescriptor) {
  const auto cache = make(3, kMiB);
  const auto other = PlaneCache::attach(cache->fd(), {.num_samples = 3, .bytes = kMiB});
  put(*cache, 0, Picture(1));
  put(*other, 2, Picture(2));
  EXPECT_TRUE(has(*other, 0, Picture(1)) && has(*cache, 2, Picture(2)));
  EXPECT_THROW(static_cast<void>(PlaneCache::attach(cache->fd(), {.num_samples = 4, .bytes = kMiB})), ConfigError);
  EXPECT_THROW(static_cast<void>(PlaneCache::attach(cache->fd(), {.num_samples = 3, .bytes = 2 * kMiB})), ConfigError);
  EXPECT_THROW(static_cast<void>(PlaneCache::attach(-1, {.num_samples = 3, .bytes = kMiB})), ConfigError);
}

TEST_F(PlaneCacheTest, ServesManyThreads) {
  const auto cache = make(64, 4 * kMiB);
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        std::vector<std::byte> own;
        for (int round = 0; round < 3; ++round)
          for (int i = 0; i < 64; ++i) {
            cache->put(i, Picture(i).planes, own);
            const auto found = cache->find(i);
            if (found && !equal(*found, Picture(i).planes)) ++wrong;
          }
      });
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache->stats().pictures, 64);
}

// The child dies of the samples themselves, when part of the record is written.
TEST_F(PlaneCacheTest, OutlivesAWriterThatIsKilled) {
  const auto cache = make(3, kMiB);
  const int died = testing::exit_code_of_child([&] {
    static_cast<void>(signal(SIGSEGV, [](int) { raise(SIGKILL); }));
    Picture picture(1);
    picture.planes.planes[2].samples =
        static_cast<std::uint8_t*>(mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    put(*cache, 1, picture);
    return true;
  });
  ASSERT_EQ(died, 128 + SIGKILL);
  EXPECT_FALSE(cache->find(1));
  EXPECT_FALSE(cache->wants(1, 61, 47));
  put(*cache, 2, Picture(2));
  EXPECT_TRUE(has(*cache, 2, Picture(2)));
}

TEST_F(PlaneCacheTest, RefusesImpossibleBudgets) {
  EXPECT_THROW(static_cast<void>(make(10, 1000)), ConfigError);
  EXPECT_THROW(static_cast<void>(make(1'000'000, kMiB)), ConfigError);
  EXPECT_THROW(static_cast<void>(make(10, std::uint64_t{1} << 60)), ConfigError);
}

TEST_F(PlaneCacheTest, IsLeftOutUnderAFileSizeLimit) {
  std::string warning;
  set_log_sink([&](LogLevel, std::string_view text) { warning = text; });
  {
    const testing::LoweredLimit small(RLIMIT_FSIZE, kMiB);
    EXPECT_EQ(make(10, 2 * kMiB), nullptr);
  }
  set_log_sink({});
  EXPECT_NE(warning.find("RLIMIT_FSIZE"), std::string::npos) << warning;
}

TEST_F(PlaneCacheTest, StopsGrowingWhereMemoryRunsShort) {
  const testing::TempFolder root;
  root.write("proc/meminfo", "MemAvailable: 8000000 kB\n");
  const auto cache = PlaneCache::create({.num_samples = 20, .bytes = 64 * kMiB, .root = root.str()});
  root.write("proc/meminfo", "MemAvailable: 9000 kB\n");
  set_log_sink([](LogLevel, std::string_view) {});
  for (int i = 0; i < 20; ++i) put(*cache, i, Picture(i, 2000, 1000));
  set_log_sink({});
  EXPECT_TRUE(cache->stats().closed);
  EXPECT_FALSE(cache->wants(19, 8, 8));
  EXPECT_EQ(cache->stats().pictures, 5);  // of 3 MB each: the sixth would pass 16 MiB
  EXPECT_TRUE(has(*cache, 4, Picture(4, 2000, 1000)));
}

}  // namespace
}  // namespace infeed
