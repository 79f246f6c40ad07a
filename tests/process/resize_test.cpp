// Workers that come and go, and loaders side by side.

#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "process/team.h"

namespace infeed::testing {
namespace {

class ResizeTest : public ::testing::TestWithParam<Team> {
 protected:
  ~ResizeTest() override { EXPECT_TRUE(children().empty()); }
};

TEST_P(ResizeTest, AHundredRandomChangesOfTheWorkerCountChangeNoBatch) {
  const TestDataset data({.size = 800, .sleep_us = 20});
  std::minstd_rand random(11);
  Loader loader(data, GetParam().options());
  std::vector<std::uint64_t> sums;
  while (auto batch = loader.next()) {
    sums.push_back(checksum(*batch));
    loader.set_num_workers(1 + static_cast<int>(random() % 6));
  }
  EXPECT_EQ(sums.size(), 100U);
  EXPECT_EQ(sums, undisturbed(TestDataset({.size = 800})));
  EXPECT_EQ(loader.stats().restarts, 0);
}

TEST_P(ResizeTest, LoadersInEightThreadsAtOnceGiveTheSameBatches) {
  const TestDataset data({.size = 160});
  const auto expected = undisturbed(data);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Loader loader(data, GetParam().options());
      EXPECT_EQ(rest_of_epoch(loader), expected);
    });
  }
}

TEST_P(ResizeTest, TwoLoadersOverOneDatasetGiveTheSameBatches) {
  const TestDataset data({.size = 160});
  Loader one(data, GetParam().options());
  LoaderOptions more = GetParam().options();
  more.num_workers = 3;
  Loader two(data, std::move(more));
  std::vector<std::uint64_t> sums;
  while (auto batch = one.next()) {
    sums.push_back(checksum(*batch));
    EXPECT_EQ(checksum(*two.next()), sums.back());
  }
  EXPECT_EQ(sums, undisturbed(data));
}

INSTANTIATE_TEST_SUITE_P(Teams, ResizeTest,
                         ::testing::ValuesIn(teams({WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn})),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace infeed::testing
