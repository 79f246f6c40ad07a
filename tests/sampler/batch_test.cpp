#include "infeed/sampler/batch.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/sampler/random.h"
#include "infeed/sampler/sequential.h"

namespace infeed {
namespace {

using Batches = std::vector<std::vector<std::int64_t>>;

Batches drain(BatchSampler& sampler) {
  Batches batches;
  std::vector<std::int64_t> batch;
  while (sampler.next(batch)) batches.push_back(batch);
  return batches;
}

TEST(FixedBatchSampler, KeepsAShortLastBatch) {
  SequentialSampler inner(7);
  FixedBatchSampler sampler(inner, {.batch_size = 3});
  EXPECT_EQ(drain(sampler), (Batches{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(sampler.size(), 3);
  EXPECT_EQ(sampler.max_batch_size(), 3);
}

TEST(FixedBatchSampler, DropsAShortLastBatch) {
  SequentialSampler inner(7);
  FixedBatchSampler sampler(inner, {.batch_size = 3, .drop_last = true});
  EXPECT_EQ(drain(sampler), (Batches{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(sampler.size(), 2);
}

TEST(FixedBatchSampler, HasNoEmptyBatchAfterAFullOne) {
  for (const bool drop_last : {false, true}) {
    FixedBatchSampler sampler(std::make_unique<SequentialSampler>(6), {.batch_size = 3, .drop_last = drop_last});
    EXPECT_EQ(drain(sampler).size(), 2U);
    EXPECT_EQ(sampler.size(), 2);
  }
}

TEST(FixedBatchSampler, YieldsNothingUntilAnEpochStarts) {
  FixedBatchSampler sampler(std::make_unique<SequentialSampler>(2), {.batch_size = 2});
  EXPECT_EQ(drain(sampler).size(), 1U);
  EXPECT_TRUE(drain(sampler).empty());
  sampler.start_epoch(1);
  EXPECT_EQ(drain(sampler).size(), 1U);
}

TEST(FixedBatchSampler, HasNoBatchOfAnEmptySet) {
  FixedBatchSampler sampler(std::make_unique<SequentialSampler>(0), {.batch_size = 2});
  EXPECT_TRUE(drain(sampler).empty());
  EXPECT_EQ(sampler.size(), 0);
}

TEST(FixedBatchSampler, ResumesAtEveryBatch) {
  const auto make = [] {
    return FixedBatchSampler(std::make_unique<RandomSampler>(50), FixedBatchOptions{.batch_size = 7});
  };
  auto whole = make();
  whole.start_epoch(3);
  const Batches expected = drain(whole);
  for (std::size_t at = 0; at <= expected.size(); ++at) {
    auto first = make();
    first.start_epoch(3);
    std::vector<std::int64_t> batch;
    for (std::size_t i = 0; i < at; ++i) ASSERT_TRUE(first.next(batch));
    State state;
    first.save(state);
    auto resumed = make();
    resumed.load(state);
    EXPECT_EQ(drain(resumed), Batches(expected.begin() + static_cast<std::ptrdiff_t>(at), expected.end()));
  }
}

TEST(FixedBatchSampler, ResumesWithAnotherBatchSize) {
  FixedBatchSampler sampler(std::make_unique<SequentialSampler>(10), {.batch_size = 4});
  std::vector<std::int64_t> batch;
  ASSERT_TRUE(sampler.next(batch));
  State state;
  sampler.save(state);
  FixedBatchSampler other(std::make_unique<SequentialSampler>(10), {.batch_size = 3});
  other.load(state);
  EXPECT_EQ(drain(other), (Batches{{4, 5, 6}, {7, 8, 9}}));
}

TEST(FixedBatchSampler, RefusesBadOptionsAndForeignStates) {
  SequentialSampler inner(3);
  EXPECT_THROW(FixedBatchSampler(inner, {.batch_size = 0}), ConfigError);
  EXPECT_THROW(FixedBatchSampler(nullptr, {}), ConfigError);
  FixedBatchSampler sampler(inner, {.batch_size = 2});
  State state;
  inner.save(state);
  EXPECT_THROW(sampler.load(state), StateError);
}

}  // namespace
}  // namespace infeed
