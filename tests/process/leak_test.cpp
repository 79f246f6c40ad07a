#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

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
  // oneTBB starts one more, up to the workers and the CPUs, where those it has are not yet asleep.
  EXPECT_LE(testing::list_directory("/proc/self/task").size(), threads + 4 + std::thread::hardware_concurrency());
}

INSTANTIATE_TEST_SUITE_P(AllKinds, LeakTest,
                         ::testing::Values(WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn),
                         [](const auto& test) { return std::string(to_string(test.param)); });

// Counts across processes.
class Signals {
 public:
  ~Signals() { ::close(fd_); }
  void give(std::uint64_t count) const { ASSERT_EQ(::write(fd_, &count, sizeof count), 8); }
  void take() const {
    std::uint64_t one = 0;
    ASSERT_EQ(::read(fd_, &one, sizeof one), 8);
  }

 private:
  int fd_ = ::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
};

// Says that a sample was begun, which needs a next(), and ends it only when told.
class HeldDataset final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 8; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& /*row*/) const override {
    begun.give(1);
    end.take();
  }
  Signals begun, end;

 private:
  Schema schema_{{"x", DType::kFloat32, {4}}};
};

TEST(LeakExtraTest, DestructionWhileAnotherThreadWaitsEndsThatWait) {
  const HeldDataset held;
  auto loader = std::make_unique<Loader>(
      held, LoaderOptions{.batch_size = 4, .num_workers = 1, .worker_kind = WorkerKind::kFork});
  std::thread other([&held, waited = loader.get()] {
    EXPECT_THROW((void)waited->next(), WorkerError);
    held.end.give(8);
  });
  held.begun.take();
  loader.reset();
  other.join();
}

}  // namespace
}  // namespace infeed
