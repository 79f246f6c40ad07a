#include <gtest/gtest.h>

#include <thread>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"
#include "support/processes.h"

namespace infeed {
namespace {

const SyntheticDataset& dataset() {
  static const SyntheticDataset data(64, {{"x", DType::kFloat32, {16}}}, {.fail_every = 50});
  return data;
}

class LeakTest : public ::testing::TestWithParam<WorkerKind> {
 protected:
  // One loader's life, ended in one of several ways.
  static void live(int way) {
    Loader loader(dataset(), {.batch_size = 4, .num_workers = 2, .worker_kind = GetParam()});
    if (way == 0) return;  // destroyed before its first batch
    const auto batch = loader.next();
    if (way == 1) return;  // early break, a batch in hand
    try {
      while (loader.next()) {
      }
    } catch (const DataError&) {  // way 2: an exception
    }
    if (way == 3) loader.set_num_workers(4);
    if (way == 4) loader.reset();
  }
};

TEST_P(LeakTest, NoEndOfALoaderLeavesAProcessADescriptorOrAThread) {
  live(4);  // what is made once and kept: TBB's threads, the locale
  const std::size_t descriptors = testing::open_descriptors();
  const std::size_t threads = testing::list_directory("/proc/self/task").size();
  for (int round = 0; round < 20; ++round) live(round % 5);
  EXPECT_EQ(testing::children().size(), 0U);
  EXPECT_EQ(testing::open_descriptors(), descriptors);
  EXPECT_LE(testing::list_directory("/proc/self/task").size(), threads + 4);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, LeakTest,
                         ::testing::Values(WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn),
                         [](const auto& test) { return std::string(to_string(test.param)); });

TEST(LeakExtraTest, DestructionWhileAnotherThreadWaitsEndsThatWait) {
  const SyntheticDataset slow(8, {{"x", DType::kFloat32, {4}}}, {.cost_us = 400'000});
  auto loader = std::make_unique<Loader>(
      slow, LoaderOptions{.batch_size = 4, .num_workers = 1, .worker_kind = WorkerKind::kFork});
  Loader* waited = loader.get();
  std::thread other([waited] { EXPECT_THROW((void)waited->next(), WorkerError); });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  loader.reset();
  other.join();
}

}  // namespace
}  // namespace infeed
