#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <semaphore>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/child.h"
#include "support/epochs.h"
#include "support/gate.h"
#include "support/processes.h"
#include "support/sanitizers.h"

namespace infeed {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

const SyntheticDataset& dataset() {
  static const SyntheticDataset data(64, {{"x", DType::kUInt8, {kMiB}}, {"index", DType::kInt64, {}}});
  return data;
}

TEST(MemoryTest, FewExtentsServeAWholeEpoch) {
  Loader loader(dataset(), {.batch_size = 4, .num_workers = 2});
  while (auto batch = loader.next()) {
  }
  // Depth 2 and one in hand, 4 MiB each.
  EXPECT_LE(loader.stats().arena_bytes, 20U * kMiB);
}

TEST(MemoryTest, PagesThatABurstOfHeldBatchesWarmedAreGivenBack) {
  for (const Filling filling : {Filling::kCooperative, Filling::kWhole}) {
    Loader loader(dataset(), {.batch_size = 1, .num_workers = 1, .filling = filling});
    std::vector<Batch> held;
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
    EXPECT_GE(loader.stats().arena_bytes, 60U * kMiB);
    held.clear();
    testing::rest_of_epoch(loader);
    EXPECT_LE(loader.stats().arena_bytes, 12U * kMiB);
  }
}

// 64 rows of 1 MiB. What is not asked for is not read.
class Ticketed final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return dataset().size(); }
  [[nodiscard]] const Schema& schema() const override { return dataset().schema(); }
  void read(Row& row) const override {
    tickets_.acquire();
    dataset().read(row);
    ++read_;
  }
  void let_read(int rows) { tickets_.release(rows); }
  void wait_until_read(int rows) const {
    testing::wait_until([&] { return read_ == rows; });
  }

 private:
  mutable std::counting_semaphore<> tickets_{0};
  mutable std::atomic<int> read_{0};
};

TEST(MemoryTest, ADeepQueueKeepsItsMemoryOverTheEndsOfEpochs) {
  Loader loader(dataset(), {.batch_size = 1, .num_workers = 1, .prefetch = 24});
  for (int epoch = 0; epoch < 3; ++epoch) {
    while (loader.next()) {
    }
    EXPECT_GE(loader.stats().arena_bytes, 24U * kMiB);
  }
}

TEST(MemoryTest, AQueueKeepsItsMemoryThroughATimeOfShortage) {
  Ticketed rows;
  Loader loader(rows, {.batch_size = 1, .num_workers = 1, .prefetch = 12, .filling = Filling::kWhole});
  rows.let_read(13);
  EXPECT_TRUE(loader.next());
  rows.wait_until_read(13);
  const std::uint64_t full = loader.stats().arena_bytes;
  EXPECT_GE(full, 12U * kMiB);
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(loader.next());
  for (int i = 0; i < 48; ++i) {
    rows.let_read(1);
    EXPECT_TRUE(loader.next());
  }
  EXPECT_GE(loader.stats().arena_bytes, full);
  rows.let_read(3);
}

TEST(MemoryTest, AnAddressSpaceLimitLeavesASmallerArena) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer's shadow needs an unlimited address space";
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_AS, rlim_t{4} << 30);
    Loader loader(dataset(), {.batch_size = 4, .num_workers = 2, .worker_kind = WorkerKind::kFork});
    return testing::rest_of_indices(loader) == testing::iota(64);
  }));
}

TEST(MemoryTest, AnAddressSpaceLimitThatIsTooSmallIsAnErrorWithNumbers) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer's shadow needs an unlimited address space";
  EXPECT_TRUE(testing::holds_in_child([] {
    const SyntheticDataset large(64, {{"x", DType::kUInt8, {256 * kMiB}}});
    const testing::LoweredLimit lowered(RLIMIT_AS, rlim_t{1} << 30);
    try {
      Loader loader(large, {.batch_size = 4, .num_workers = 2});
    } catch (const MemoryError& error) {
      return std::string(error.what()).find("RLIMIT_AS") != std::string::npos;
    }
    return false;
  }));
}

TEST(MemoryTest, AFileSizeLimitIsAnErrorNotASignal) {
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_FSIZE, rlim_t{4} << 20);
    try {
      Loader loader(dataset(), {.batch_size = 8, .num_workers = 1});
    } catch (const MemoryError& error) {
      return std::string(error.what()).find("RLIMIT_FSIZE") != std::string::npos;
    }
    return false;
  }));
}

TEST(MemoryTest, ALimitOf32DescriptorsSufficesForTwelveWorkers) {
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_NOFILE, 32);
    Loader loader(dataset(), {.batch_size = 4, .num_workers = 12, .worker_kind = WorkerKind::kFork});
    return testing::rest_of_indices(loader) == testing::iota(64);
  }));
}

TEST(MemoryTest, TooFewDescriptorsAreAnErrorAndLeaveNothing) {
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_NOFILE, 16);
    try {
      Loader loader(dataset(), {.batch_size = 4, .num_workers = 30, .worker_kind = WorkerKind::kFork});
    } catch (const MemoryError&) {
      return testing::children().empty();
    }
    return false;
  }));
}

TEST(MemoryTest, ABatchHeldOverTheUsersForkIsNotWrittenAgain) {
  Loader loader(dataset(), {.batch_size = 1, .num_workers = 1});
  auto batch = loader.next();
  const std::uint64_t sum = testing::checksum(*batch);
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t child = fork();
  if (child == 0) {
    char go = 0;
    if (read(pipe_fds[0], &go, 1) != 1) _exit(2);
    _exit(testing::checksum(*batch) == sum ? 0 : 1);
  }
  batch.reset();
  testing::rest_of_epoch(loader);
  ASSERT_EQ(write(pipe_fds[1], "g", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST(MemoryTest, InAForkedChildTheLoaderIsInert) {
  Loader loader(dataset(), {.batch_size = 1, .num_workers = 2, .worker_kind = WorkerKind::kFork});
  ASSERT_TRUE(loader.next());
  EXPECT_TRUE(testing::holds_in_child([&] {
    try {
      (void)loader.next();
    } catch (const ConfigError&) {
      loader.~Loader();
      return true;
    }
    return false;
  }));
  EXPECT_EQ(testing::rest_of_indices(loader).size(), 63U);
}

}  // namespace
}  // namespace infeed
