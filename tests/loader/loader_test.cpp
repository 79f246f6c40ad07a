#include "infeed/loader/loader.h"

#include <gtest/gtest.h>

#include <thread>

#include "infeed/base/error.h"
#include "infeed/collate/pad.h"
#include "infeed/collate/ragged.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/dataset/tensor_dataset.h"
#include "support/epochs.h"
#include "support/processes.h"

namespace infeed {
namespace {

using testing::iota;
using testing::rest_of_epoch;
using testing::rest_of_indices;

const Schema kSchema{{"x", DType::kFloat32, {4}}, {"index", DType::kInt64, {}}};
const SyntheticDataset kTen(10, kSchema);

TEST(LoaderTest, YieldsEverySampleInOrderAndThenEndsOnce) {
  Loader loader(kTen, {.batch_size = 3});
  EXPECT_EQ(loader.size(), 4);
  EXPECT_EQ(rest_of_indices(loader), iota(10));
  EXPECT_EQ(loader.epoch(), 1U);
  EXPECT_EQ(rest_of_indices(loader), iota(10));
}

TEST(LoaderTest, ABatchHasTheSamplesThatItsIndicesName) {
  Loader loader(kTen, {.batch_size = 4, .shuffle = true, .seed = 5, .num_workers = 2});
  while (auto batch = loader.next()) {
    EXPECT_EQ(batch->at("x").shape, Shape({batch->size(), 4}));
    for (std::int64_t i = 0; i < batch->size(); ++i)
      EXPECT_EQ(batch->at("index").as<std::int64_t>()[i], batch->indices()[static_cast<std::size_t>(i)]);
  }
}

TEST(LoaderTest, DropLastLeavesTheShortBatchOut) {
  Loader loader(kTen, {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.size(), 2);
  EXPECT_EQ(rest_of_indices(loader), iota(8));
}

TEST(LoaderTest, ABatchLargerThanTheDatasetHoldsItAll) {
  Loader loader(kTen, {.batch_size = 64, .num_workers = 2});
  EXPECT_EQ(rest_of_indices(loader), iota(10));
}

TEST(LoaderTest, AnEmptyDatasetHasNoBatches) {
  const SyntheticDataset empty(0, kSchema);
  Loader loader(empty, {.batch_size = 4, .num_workers = 2});
  EXPECT_FALSE(loader.next());
  EXPECT_FALSE(loader.next());
}

TEST(LoaderTest, EpochsAreShuffledAnewAndSetEpochRepeatsOne) {
  Loader loader(kTen, {.batch_size = 3, .shuffle = true, .num_workers = 2});
  const auto first = rest_of_indices(loader);
  EXPECT_NE(rest_of_indices(loader), first);
  loader.set_epoch(0);
  EXPECT_EQ(rest_of_indices(loader), first);
}

TEST(LoaderTest, ResetInMidEpochBeginsTheNextEpoch) {
  Loader loader(kTen, {.batch_size = 3, .shuffle = true, .num_workers = 2});
  Loader reference(kTen, {.batch_size = 3, .shuffle = true});
  ASSERT_TRUE(loader.next());
  loader.reset();
  reference.set_epoch(1);
  EXPECT_EQ(rest_of_epoch(loader), rest_of_epoch(reference));
}

TEST(LoaderTest, ARangeForRunsOneEpochAndABreakStartsTheNextOneAfresh) {
  Loader loader(kTen, {.batch_size = 3, .num_workers = 2});
  std::int64_t seen = 0;
  for (Batch& batch : loader) {
    seen += batch.size();
    break;
  }
  for (Batch& batch : loader) seen += batch.size();
  EXPECT_EQ(seen, 3 + 10);
}

TEST(LoaderTest, HeldBatchesStayAsTheyWereAlsoAfterTheLoaderIsGone) {
  std::vector<Batch> held;
  std::vector<std::uint64_t> sums;
  {
    Loader loader(kTen, {.batch_size = 1, .num_workers = 2, .worker_kind = WorkerKind::kFork});
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
    for (const Batch& batch : held) sums.push_back(testing::checksum(batch));
  }
  for (std::size_t i = 0; i < held.size(); ++i) EXPECT_EQ(testing::checksum(held[i]), sums[i]);
}

TEST(LoaderTest, MoreHeldBatchesThanExtentsAreHandedOutAsCopies) {
  const SyntheticDataset many(1500, kSchema);
  Loader loader(many, {.batch_size = 1, .num_workers = 1});
  std::vector<Batch> held;
  while (auto batch = loader.next()) held.push_back(std::move(*batch));
  ASSERT_EQ(held.size(), 1500U);
  EXPECT_GT(loader.stats().private_copies, 0);
  for (std::int64_t i = 0; i < 1500; ++i)
    EXPECT_EQ(held[static_cast<std::size_t>(i)].at("index").as<std::int64_t>()[0], i);
}

TEST(LoaderTest, AMemoryLimitTurnsHoldingIntoAnErrorThatCountsTheBatches) {
  const SyntheticDataset many(100, {{"x", DType::kUInt8, {1 << 20}}});
  Loader loader(many, {.batch_size = 1, .num_workers = 1, .memory_limit = 8 << 20});
  std::vector<Batch> held;
  try {
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(held.size()) + " batches"), std::string::npos)
        << error.what();
  }
  held.clear();
  EXPECT_TRUE(loader.next());
}

TEST(LoaderTest, RaggedRowsBecomeValuesAndOffsets) {
  const SyntheticDataset ragged(20, {{"tokens", DType::kInt64, {-1}}, {"index", DType::kInt64, {}}},
                                {.min_length = 0, .max_length = 9});
  Loader inline_loader(ragged, {.batch_size = 6, .collate = std::make_shared<RaggedCollate>()});
  Loader fork_loader(ragged, {.batch_size = 6,
                              .num_workers = 3,
                              .worker_kind = WorkerKind::kFork,
                              .collate = std::make_shared<RaggedCollate>()});
  EXPECT_EQ(rest_of_epoch(inline_loader), rest_of_epoch(fork_loader));
  const auto batch = inline_loader.next();
  EXPECT_EQ(batch->at("tokens.offsets").shape, Shape({7}));
  EXPECT_EQ(batch->at("tokens.offsets").as<std::int64_t>()[6], batch->at("tokens").shape[0]);
}

TEST(LoaderTest, AMisspeltFieldOfPadCollateIsAConfigErrorThatListsTheFields) {
  const SyntheticDataset ragged(20, {{"tokens", DType::kInt64, {-1}}});
  Loader loader(ragged, {.batch_size = 6,
                         .num_workers = 1,
                         .collate = std::make_shared<PadCollate>(PadOptions{.fill = {{"tokenz", 3}}})});
  try {
    (void)loader.next();
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("fields: tokens"), std::string::npos) << error.what();
  }
}

TEST(LoaderTest, TwoLoadersOverOneDatasetGiveTheSameBatches) {
  Loader one(kTen, {.batch_size = 3, .shuffle = true, .num_workers = 2});
  Loader two(kTen, {.batch_size = 3, .shuffle = true, .num_workers = 1, .worker_kind = WorkerKind::kFork});
  while (auto batch = one.next()) EXPECT_EQ(testing::checksum(*batch), testing::checksum(*two.next()));
}

TEST(LoaderTest, AMissingDeviceIsAnErrorThatLeavesNoWorkerAndLoadersWithoutOneWork) {
  const std::size_t descriptors = testing::open_descriptors();
  const auto open = [](const std::string& device) {
    Loader loader(kTen, {.batch_size = 3, .num_workers = 2, .worker_kind = WorkerKind::kFork, .device = device});
    return rest_of_indices(loader);
  };
  EXPECT_THROW(open("tpu:0"), DeviceError);
  EXPECT_TRUE(testing::eventually([] { return testing::children().empty(); }));
  EXPECT_EQ(testing::open_descriptors(), descriptors);
  EXPECT_EQ(open(""), iota(10));
}

TEST(LoaderTest, LoadersInEightThreadsDoNotDisturbEachOther) {
  Loader reference(kTen, {.batch_size = 3, .shuffle = true});
  const auto expected = rest_of_epoch(reference);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      Loader loader(kTen, {.batch_size = 3, .shuffle = true, .num_workers = 2});
      EXPECT_EQ(rest_of_epoch(loader), expected);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LoaderTest, WorkersComeAndGoDuringAnEpochWithoutChangingABatch) {
  const SyntheticDataset many(400, kSchema);
  Loader reference(many, {.batch_size = 4, .shuffle = true});
  for (const WorkerKind kind : {WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn}) {
    reference.set_epoch(0);
    Loader loader(many, {.batch_size = 4, .shuffle = true, .num_workers = 2, .worker_kind = kind});
    for (int step = 0; auto batch = loader.next(); ++step) {
      EXPECT_EQ(testing::checksum(*batch), testing::checksum(*reference.next()));
      if (step % 10 == 0) loader.set_num_workers(1 + (step / 10 * 3) % 5);
    }
    EXPECT_FALSE(reference.next());
  }
}

TEST(LoaderTest, StatsCountWhatWasDone) {
  Loader loader(kTen, {.batch_size = 3, .num_workers = 2, .worker_kind = WorkerKind::kFork});
  rest_of_epoch(loader);
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.batches, 4U);
  EXPECT_EQ(stats.samples, 10U);
  EXPECT_GT(stats.pss_bytes, 0U);
  EXPECT_EQ(stats.workers.size(), 2U);
  EXPECT_EQ(stats.workers[0].samples + stats.workers[1].samples, 10U);
  EXPECT_GT(stats.first_batch_ms, 0);
}

}  // namespace
}  // namespace infeed
