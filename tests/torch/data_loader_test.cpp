#include "infeed/torch/data_loader.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/data/dataloader.h>

#include <set>
#include <string>
#include <thread>

#include "support/processes.h"
#include "torch/datasets.h"
#include "torch/values.h"

namespace infeed::torch {
namespace {

using infeed::testing::Bare;
using infeed::testing::Boxes;
using infeed::testing::Bulk;
using infeed::testing::children;
using infeed::testing::Chunks;
using infeed::testing::Countdown;
using infeed::testing::expect_same;
using infeed::testing::Gap;
using infeed::testing::Numbers;
using infeed::testing::open_descriptors;
using infeed::testing::Tap;
using infeed::testing::targets;
using infeed::testing::values;
using td::DataLoaderOptions;
using td::samplers::SequentialSampler;
using td::transforms::Stack;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Kind {
  const char* name;
  std::size_t workers;
  WorkerKind kind;
};

class DataLoaderTest : public ::testing::TestWithParam<Kind> {
 protected:
  static DataLoaderOptions options(std::size_t batch_size) {
    return DataLoaderOptions(batch_size).workers(GetParam().workers);
  }
  static EngineOptions engine() { return {.worker_kind = GetParam().kind}; }
};
INSTANTIATE_TEST_SUITE_P(, DataLoaderTest,
                         ::testing::Values(Kind{"none", 0, WorkerKind::kAuto}, Kind{"fork", 2, WorkerKind::kFork},
                                           Kind{"thread", 2, WorkerKind::kThread}),
                         [](const auto& kind) { return kind.param.name; });

// Both loaders over the same dataset, from the same state of the default generator, for two epochs.
template <typename Sampler, typename Dataset>
void expect_as_torch(Dataset dataset, const Sampler& sampler, const DataLoaderOptions& options,
                     const EngineOptions& engine) {
  at::manual_seed(7);
  auto theirs = td::make_data_loader(dataset, sampler, options);
  std::vector<td::Example<>> expected;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *theirs) expected.push_back(batch);
  }
  at::manual_seed(7);
  auto ours = data_loader(dataset, sampler, options, engine);
  std::size_t at = 0;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (auto& batch : *ours) {
      ASSERT_LT(at, expected.size());
      expect_same(batch.data, expected[at].data);
      expect_same(batch.target, expected[at++].target);
    }
  }
  EXPECT_EQ(at, expected.size());
}
template <typename Sampler = td::samplers::RandomSampler, typename Dataset>
void expect_as_torch(Dataset dataset, const DataLoaderOptions& options, const EngineOptions& engine) {
  at::manual_seed(5);
  const Sampler sampler(*dataset.size());
  expect_as_torch(std::move(dataset), sampler, options, engine);
}

TEST_P(DataLoaderTest, GivesTheBatchesOfTorchInItsOrder) {
  expect_as_torch(Numbers(37).map(Stack<>()), options(4), engine());
}

TEST_P(DataLoaderTest, AppliesTransforms) {
  auto twice = td::transforms::Lambda<td::Example<>>(
      [](td::Example<> example) { return td::Example<>(example.data * 2, example.target); });
  expect_as_torch(Numbers(10).map(twice).map(Stack<>()), options(4), engine());
  expect_as_torch(Numbers(10).map(td::transforms::Normalize<>(1.0, 2.0)).map(Stack<>()), options(4), engine());
}

TEST_P(DataLoaderTest, TakesTheSamplersOfTorch) {
  using namespace td::samplers;
  const auto dataset = Numbers(9).map(Stack<>());
  expect_as_torch<SequentialSampler>(dataset, options(4), engine());
  expect_as_torch<RandomSampler>(dataset, options(4).drop_last(true), engine());
  for (const bool allow_duplicates : {false, true}) {
    for (const std::size_t rank : {0, 1}) {
      expect_as_torch(dataset, DistributedRandomSampler(9, 2, rank, allow_duplicates), options(2), engine());
      expect_as_torch(dataset, DistributedSequentialSampler(9, 2, rank, allow_duplicates), options(2), engine());
    }
  }
}

TEST_P(DataLoaderTest, CallsGetBatchWhereADatasetHasItsOwn) {
  expect_as_torch(Bulk().map(Stack<>()), options(5), engine());
}

TEST_P(DataLoaderTest, GivesLooseSamplesWithoutACollation) {
  auto loader = data_loader<SequentialSampler>(Numbers(5), options(3), engine());
  std::vector<std::size_t> sizes;
  for (std::vector<td::Example<>>& batch : *loader) {
    sizes.push_back(batch.size());
    for (const auto& example : batch) expect_same(example.data[0][0], example.target.to(at::kFloat) + 0.25);
  }
  EXPECT_THAT(sizes, ElementsAre(3, 2));
}

TEST_P(DataLoaderTest, StacksSamplesWithoutTargets) {
  auto loader = data_loader<SequentialSampler>(Bare().map(Stack<td::TensorExample>()), options(10), engine());
  for (td::TensorExample& batch : *loader) expect_same(batch.data.select(1, 1), at::arange(10, at::kFloat));
}

TEST_P(DataLoaderTest, CarriesATypeOfTheUsersOwn) {
  auto collate =
      td::transforms::BatchLambda<std::vector<td::Example<>>, Boxes>([](const std::vector<td::Example<>>& in) {
        Boxes boxes{in[0].data.t(), {}, "a path", 0.5};
        for (const auto& example : in) boxes.corners.push_back(example.target);
        boxes.corners.emplace_back();
        return boxes;
      });
  auto loader = data_loader<SequentialSampler>(Numbers(2).map(collate), options(2), engine());
  for (Boxes& boxes : *loader) {
    EXPECT_THAT(boxes.image.strides(), ElementsAre(1, 4));
    EXPECT_EQ(boxes.corners[1].item<int>(), 1);
    EXPECT_FALSE(boxes.corners[2].defined());
    EXPECT_EQ(boxes.path, "a path");
    EXPECT_EQ(boxes.scale, 0.5);
  }
}

TEST_P(DataLoaderTest, AsksAStatefulDatasetUntilItHasNoMore) {
  const EngineOptions threads{.worker_kind = WorkerKind::kAuto};
  auto loader = data_loader(Countdown(10).map(Stack<>()), options(4), threads);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto& batch : *loader) {
      if (epoch == 1) break;  // the next one begins afresh
      EXPECT_LE(batch.target.numel(), 4);
    }
  }
  const auto all = targets(*loader);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 10U);
}

TEST(DataLoaderEpoch, EndsWithoutWorkersWhereAStatefulDatasetFirstHasNoMore) {
  auto loader = data_loader(Gap(), DataLoaderOptions(1));
  for (int epoch = 0; epoch < 2; ++epoch) {
    auto at = loader->begin();
    EXPECT_EQ(at->item<int>(), 1);
    EXPECT_TRUE(++at == loader->end());
  }
}

TEST_P(DataLoaderTest, ReadsAChunkDatasetAsTorchDoes) {
  const auto make = [] {
    return td::datasets::make_shared_dataset<td::datasets::ChunkDataset<Chunks, SequentialSampler, SequentialSampler>>(
               Chunks(), SequentialSampler(0), SequentialSampler(0), td::datasets::ChunkDatasetOptions(1, 5))
        .map(Stack<>());
  };
  const EngineOptions threads{.worker_kind = WorkerKind::kAuto};
  auto theirs = td::make_data_loader(make(), DataLoaderOptions(5).workers(0));
  auto ours = data_loader(make(), options(5).workers(std::min<std::size_t>(1, GetParam().workers)), threads);
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(targets(*ours), targets(*theirs));
  for (auto& batch : *ours) {
    if (batch.target.numel() > 0) break;
  }
  EXPECT_EQ(targets(*ours), values(at::arange(12)));
}

TEST_P(DataLoaderTest, ServesBatchSizesOfAStreamSampler) {
  auto loader = data_loader(Tap(), td::samplers::StreamSampler(10), options(4), engine());
  std::int64_t sum = 0;
  for (at::Tensor& batch : *loader) sum += batch.numel();
  EXPECT_EQ(sum, 10);
}

TEST_P(DataLoaderTest, MayGiveBatchesAsTheyAreReady) {
  auto loader =
      data_loader<SequentialSampler>(Numbers(20).map(Stack<>()), options(3).enforce_ordering(false), engine());
  const auto all = targets(*loader);
  EXPECT_EQ(std::set(all.begin(), all.end()).size(), 20U);
}

TEST(DataLoaderQueue, HoldsNoMoreBatchesThanMaxJobs) {
  std::atomic<int> made{0};
  auto count = td::transforms::Lambda<td::Example<>>([&made](td::Example<> example) {
    ++made;
    return example;
  });
  auto loader =
      data_loader<SequentialSampler>(Numbers(40).map(count).map(Stack<>()), DataLoaderOptions(1).workers(2).max_jobs(5),
                                     {.worker_kind = WorkerKind::kThread});
  int taken = 0;
  for (auto& batch : *loader) {
    taken += static_cast<int>(batch.target.numel());
    EXPECT_LE(made, taken + 5);
  }
  EXPECT_EQ(taken, 40);
  EXPECT_EQ(loader->stats().prefetch, 5);
}

TEST_P(DataLoaderTest, BeginsAnotherEpochAfterABreak) {
  auto loader = data_loader<SequentialSampler>(Numbers(64).map(Stack<>()), options(2), engine());
  for (auto& batch : *loader) {
    if (batch.target[0].item<int>() == 6) break;
  }
  EXPECT_EQ(targets(*loader).size(), 64U);
}

TEST_P(DataLoaderTest, AnotherEpochEndsTheIteratorsOfTheOneBefore) {
  auto loader = data_loader<SequentialSampler>(Numbers(8).map(Stack<>()), options(2), engine());
  auto old = loader->begin(), unread = loader->begin();
  auto at = loader->begin();
  expect_same(at->target, at::arange(2));
  EXPECT_TRUE(old == loader->end());
  EXPECT_THROW(++unread, c10::Error);
  ++at;
  expect_same(at->target, at::arange(2, 4));
}

TEST_P(DataLoaderTest, TellsHowManyBatchesAreInFlight) {
  const std::size_t workers = GetParam().workers;
  auto loader = data_loader(Numbers(8).map(Stack<>()), options(2), engine());
  EXPECT_EQ(loader->options().max_jobs, workers + 1);
  EXPECT_EQ(loader->stats().prefetch, workers + 1);
}

TEST_P(DataLoaderTest, TwoLoadersRunSideBySide) {
  auto a = data_loader<SequentialSampler>(Numbers(12).map(Stack<>()), options(4), engine());
  auto b = data_loader<SequentialSampler>(Numbers(12).map(Stack<>()), options(4), engine());
  auto other = b->begin();
  for (auto& batch : *a) {
    expect_same(batch.data, other->data);
    ++other;
  }
}

TEST_P(DataLoaderTest, TensorsOutliveTheLoader) {
  td::Example<> kept;
  {
    auto loader = data_loader<SequentialSampler>(Numbers(8).map(Stack<>()), options(4), engine());
    for (auto& batch : *loader) kept = batch;
  }
  EXPECT_THAT(values(kept.target), ElementsAre(4, 5, 6, 7));
  std::thread([moved = std::move(kept)] {}).join();
}

TEST_P(DataLoaderTest, LeavesNoProcessAndNoDescriptorBehind) {
  const std::size_t before = open_descriptors();
  {
    auto loader = data_loader(Numbers(64).map(Stack<>()), options(2), engine());
    for (auto& batch : *loader) {
      if (batch.data.numel() > 0) break;
    }
  }
  EXPECT_TRUE(infeed::testing::eventually([] { return children().empty(); }));
  EXPECT_EQ(open_descriptors(), before);
}

TEST_P(DataLoaderTest, RefusesSamplesOfOtherShapes) {
  auto cut = td::transforms::Lambda<td::Example<>>([](td::Example<> example) {
    return td::Example<>(example.data.narrow(0, 0, example.target.item<int>() == 2 ? 1 : 3), example.target);
  });
  auto loader = data_loader<SequentialSampler>(Numbers(4).map(cut).map(Stack<>()), options(4), engine());
  try {
    targets(*loader);
    FAIL();
  } catch (const std::exception& error) {
    EXPECT_THAT(error.what(), HasSubstr("sample 2 of the batch has the shape [1, 4], the first has [3, 4]"));
  }
}

TEST_P(DataLoaderTest, PromotesDtypesAsStackDoes) {
  auto widen = td::transforms::Lambda<td::Example<>>([](td::Example<> example) {
    return td::Example<>(example.data.to(example.target.item<int>() == 2 ? at::kDouble : at::kFloat), example.target);
  });
  expect_as_torch<SequentialSampler>(Numbers(4).map(widen).map(Stack<>()), options(4), engine());
}

TEST_P(DataLoaderTest, TakesZerosThatHaveNoMemory) {
  auto zero = td::transforms::Lambda<td::Example<>>(
      [](td::Example<> example) { return td::Example<>(at::_efficientzerotensor({3}, at::kFloat), example.target); });
  expect_as_torch<SequentialSampler>(Numbers(4).map(zero).map(Stack<>()), options(4), engine());
  auto loose = data_loader<SequentialSampler>(Numbers(4).map(zero), options(4), engine());
  for (auto& batch : *loose) expect_same(batch[3].data, at::zeros(3));
}

TEST_P(DataLoaderTest, CopiesNothingButTheSample) {
  auto loader = data_loader<SequentialSampler>(Numbers(4).map(Stack<>()), options(4), engine());
  for (auto& batch : *loader) {
    EXPECT_TRUE(batch.data.is_contiguous());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(batch.data.const_data_ptr()) % 64, 0U);
    EXPECT_EQ(loader->stats().batches_held, 1);
    EXPECT_EQ(loader->stats().private_copies, 0);
  }
  EXPECT_EQ(loader->stats().batches_held, 0);
}

}  // namespace
}  // namespace infeed::torch
