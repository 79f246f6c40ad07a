#include <gtest/gtest.h>

#include <algorithm>
#include <span>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "infeed/sampler/batch.h"
#include "infeed/sampler/distributed.h"
#include "infeed/sampler/random.h"
#include "support/epochs.h"

namespace infeed {
namespace {

using testing::rest_of_epoch;
using testing::rest_of_indices;

const SyntheticDataset kData(40, {{"x", DType::kFloat32, {4}}, {"index", DType::kInt64, {}}});

LoaderOptions options(std::uint64_t seed = 0) {
  return {.batch_size = 4, .shuffle = true, .seed = seed, .num_workers = 2};
}

TEST(StateTest, SurvivesJson) {
  Loader first(kData, options());
  ASSERT_TRUE(first.next());
  ASSERT_TRUE(first.next());
  Loader second(kData, options());
  second.load_state_dict(State::from_json(first.state_dict().to_json()));
  EXPECT_EQ(rest_of_epoch(second), rest_of_epoch(first));
}

TEST(StateTest, LaterEpochsAfterAResumeAreWholeAndEqual) {
  Loader first(kData, options());
  ASSERT_TRUE(first.next());
  Loader second(kData, options());
  second.load_state_dict(first.state_dict());
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(rest_of_epoch(second), rest_of_epoch(first));
}

TEST(StateTest, BetweenEpochsTheNextOneBegins) {
  Loader first(kData, options());
  rest_of_epoch(first);
  Loader second(kData, options());
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.epoch(), 1U);
  EXPECT_EQ(rest_of_epoch(second), rest_of_epoch(first));
}

TEST(StateTest, IsTheStateOfTheBatchHandedOutNotOfThePrefetch) {
  Loader deep(kData, {.batch_size = 4, .num_workers = 2, .prefetch = 8});
  ASSERT_TRUE(deep.next());
  Loader second(kData, {.batch_size = 4});
  second.load_state_dict(deep.state_dict());
  EXPECT_EQ(second.next()->indices()[0], 4);
}

TEST(StateTest, OutOfOrderDeliveryResumesWithTheBatchesThatAreMissing) {
  const SyntheticDataset uneven(40, {{"index", DType::kInt64, {}}},
                                {.cost_us = 200, .slow_every = 5, .slow_factor = 30});
  LoaderOptions loose{.batch_size = 2, .num_workers = 4, .prefetch = 6, .filling = Filling::kWhole, .in_order = false};
  Loader first(uneven, std::move(loose));
  std::vector<std::int64_t> seen;
  for (int i = 0; i < 9; ++i) {
    const auto batch = first.next();
    seen.insert(seen.end(), batch->indices().begin(), batch->indices().end());
  }
  Loader second(uneven, {.batch_size = 2});
  second.load_state_dict(first.state_dict());
  const auto rest = rest_of_indices(second);
  seen.insert(seen.end(), rest.begin(), rest.end());
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, testing::iota(40));
}

TEST(StateTest, BatchSamplersResumeToo) {
  const auto make = [] {
    return Loader(kData, {.batch_sampler = std::make_unique<FixedBatchSampler>(
                              std::make_unique<RandomSampler>(40, RandomSamplerOptions{.seed = 3}),
                              FixedBatchOptions{.batch_size = 6}),
                          .num_workers = 2});
  };
  Loader first = make();
  ASSERT_TRUE(first.next());
  Loader second = make();
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(rest_of_epoch(second), rest_of_epoch(first));
}

void append(std::vector<std::int64_t>& all, std::span<const std::int64_t> more) {
  all.insert(all.end(), more.begin(), more.end());
}

LoaderOptions shard_of_40(int rank, int world_size) {
  const DistributedSamplerOptions options{.rank = rank, .world_size = world_size, .seed = 1};
  return {.batch_size = 2, .sampler = std::make_unique<DistributedSampler>(40, options)};
}

TEST(StateTest, ADistributedEpochResumesOnAnotherWorldSize) {
  std::vector<std::int64_t> seen;
  State state;
  for (int rank = 0; rank < 2; ++rank) {
    Loader loader(kData, shard_of_40(rank, 2));
    for (int i = 0; i < 4; ++i) append(seen, loader.next()->indices());
    state = loader.state_dict();
  }
  for (int rank = 0; rank < 4; ++rank) {
    Loader loader(kData, shard_of_40(rank, 4));
    loader.load_state_dict(state);
    append(seen, rest_of_indices(loader));
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, testing::iota(40));
}

TEST(StateTest, ForeignStatesAreRefusedWithBothValues) {
  Loader loader(kData, options());
  ASSERT_TRUE(loader.next());
  const SyntheticDataset other(41, kData.schema());
  Loader larger(other, options());
  EXPECT_THROW(larger.load_state_dict(loader.state_dict()), StateError);
  Loader reseeded(kData, options(9));
  EXPECT_THROW(reseeded.load_state_dict(loader.state_dict()), StateError);
  EXPECT_THROW(loader.load_state_dict(State()), StateError);
}

}  // namespace
}  // namespace infeed
