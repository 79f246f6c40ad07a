#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "infeed/dataset/dataset.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"

namespace infeed {
namespace {

using testing::iota;
using testing::rest_of_indices;

/// Samples come when the gate is open.
class Gated final : public Dataset {
 public:
  void open() { gate_.set_value(); }
  [[nodiscard]] std::int64_t size() const override { return 10; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override {
    opened_.wait();
    row.set(0, row.index());
  }

 private:
  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  Schema schema_{{"index", DType::kInt64, {}}};
};

struct Interrupt : std::runtime_error {
  Interrupt() : std::runtime_error("interrupted") {}
};

/// Throws at its first `times` calls.
std::function<void()> interrupting(int times) {
  return [left = times]() mutable {
    if (left-- > 0) throw Interrupt();
  };
}

TEST(OnWaitTest, InterruptsAWaitForAWorkerAndLosesNothing) {
  Gated dataset;
  Loader loader(dataset, {.batch_size = 4, .num_workers = 2, .on_wait = interrupting(3)});
  for (int i = 0; i < 3; ++i) EXPECT_THROW((void)loader.next(), Interrupt);
  dataset.open();
  EXPECT_EQ(rest_of_indices(loader), iota(10));
}

TEST(OnWaitTest, InterruptsACallerThatDoesTheWorkAndLosesNothing) {
  const SyntheticDataset dataset(10, {{"index", DType::kInt64, {}}});
  Loader loader(dataset, {.batch_size = 4, .on_wait = interrupting(1)});
  EXPECT_THROW((void)loader.next(), Interrupt);
  EXPECT_EQ(rest_of_indices(loader), iota(10));
}

TEST(OnWaitTest, InterruptsAWaitForSlotsOfADroppedEpoch) {
  Gated dataset;
  Loader loader(dataset, {.batch_size = 1, .num_workers = 1, .prefetch = 1, .on_wait = interrupting(20)});
  for (int i = 0; i < 20; ++i) {
    EXPECT_THROW((void)loader.next(), Interrupt);
    loader.set_epoch(0);
  }
  dataset.open();
  EXPECT_EQ(rest_of_indices(loader), iota(10));
}

}  // namespace
}  // namespace infeed
