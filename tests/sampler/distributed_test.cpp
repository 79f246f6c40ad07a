#include "infeed/sampler/distributed.h"

#include <set>

#include "conformance/sampler_conformance.h"
#include "infeed/sampler/feistel.h"

namespace infeed {
namespace {

using Indices = std::vector<std::int64_t>;

SamplerCase distributed(const std::string& name, std::int64_t size, std::int64_t count,
                        const DistributedSamplerOptions& options) {
  return {name, size, count, options.shuffle,
          [size, options] { return std::make_unique<DistributedSampler>(size, options); }};
}

INSTANTIATE_TEST_SUITE_P(
    Distributed, SamplerConformance,
    ::testing::Values(distributed("Empty", 0, 0, {.rank = 1, .world_size = 2}), distributed("Alone", 100, 100, {}),
                      distributed("Padded", 100, 34, {.rank = 2, .world_size = 3, .seed = 5}),
                      distributed("Cut", 100, 33, {.rank = 2, .world_size = 3, .drop_last = true}),
                      distributed("InOrder", 101, 51, {.rank = 1, .world_size = 2, .shuffle = false}),
                      distributed("MoreRanksThanSamples", 3, 1, {.rank = 7, .world_size = 10})),
    sampler_case_name);

Indices take(Sampler& sampler, std::size_t count) {
  Indices part(count);
  part.resize(sampler.next(part));
  return part;
}

TEST(DistributedSampler, GivesTorchsSharesOfTen) {  // len 10, 3 replicas, seed 3
  const Indices expected[] = {{6, 7, 1, 4}, {0, 8, 9, 6}, {3, 5, 2, 0}};
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    DistributedSampler sampler(10, {.rank = rank, .world_size = 3, .seed = 3});
    EXPECT_EQ(take(sampler, 99), expected[rank]);
  }
}

TEST(DistributedSampler, RepeatsAShortSetUntilEveryRankHasOne) {
  for (std::int64_t rank = 0; rank < 10; ++rank) {
    DistributedSampler sampler(3, {.rank = rank, .world_size = 10, .shuffle = false});
    EXPECT_EQ(take(sampler, 99), Indices{rank % 3});
  }
}

TEST(DistributedSampler, RefusesImpossibleRanks) {
  EXPECT_THROW(DistributedSampler(10, {.rank = 2, .world_size = 2}), ConfigError);
  EXPECT_THROW(DistributedSampler(10, {.rank = -1, .world_size = 2}), ConfigError);
  EXPECT_THROW(DistributedSampler(10, {.rank = 0, .world_size = 0}), ConfigError);
  EXPECT_THROW(DistributedSampler(-10), ConfigError);
}

using MakeRank = std::unique_ptr<Sampler> (*)(std::int64_t rank, std::int64_t world_size, bool drop_last);

std::unique_ptr<Sampler> make_distributed(std::int64_t rank, std::int64_t world_size, bool drop_last) {
  return std::make_unique<DistributedSampler>(
      101, DistributedSamplerOptions{.rank = rank, .world_size = world_size, .seed = 6, .drop_last = drop_last});
}
std::unique_ptr<Sampler> make_feistel(std::int64_t rank, std::int64_t world_size, bool drop_last) {
  return std::make_unique<FeistelSampler>(
      101, FeistelSamplerOptions{.seed = 6, .rank = rank, .world_size = world_size, .drop_last = drop_last});
}

/// Both kinds that are dealt out to ranks, over 101 samples.
class Resharding : public ::testing::TestWithParam<MakeRank> {
 protected:
  /// What all ranks of a world take, `per_rank` each, from `state` on (empty: from the start); `state` moves along.
  Indices take_all(std::int64_t world_size, std::size_t per_rank, bool drop_last = false) {
    Indices all;
    const State start = state;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      const auto sampler = GetParam()(rank, world_size, drop_last);
      if (start.contains("type")) sampler->load(start);
      for (const std::int64_t index : take(*sampler, per_rank)) all.push_back(index);
      state = State();
      sampler->save(state);
    }
    return all;
  }

  static std::size_t distinct(const Indices& indices) { return std::set(indices.begin(), indices.end()).size(); }

  State state;
};

INSTANTIATE_TEST_SUITE_P(Kinds, Resharding, ::testing::Values(&make_distributed, &make_feistel));

TEST_P(Resharding, DealsTheRestToAnotherWorldSize) {
  Indices all = take_all(4, 10);
  for (const std::int64_t index : take_all(3, 99)) all.push_back(index);
  EXPECT_EQ(distinct(all), 101U);
  EXPECT_EQ(all.size(), 40U + 63U);  // 61 are left: 21 for each of three, two of them padding
}

TEST_P(Resharding, DealsTheRestWithoutRepeatsWhenTheLastAreDropped) {
  Indices all = take_all(4, 10, true);
  for (const std::int64_t index : take_all(3, 99, true)) all.push_back(index);
  EXPECT_EQ(all.size(), 40U + 60U);
  EXPECT_EQ(distinct(all), all.size());
}

TEST_P(Resharding, MayChangeSeveralTimes) {
  Indices all = take_all(4, 10);
  for (const std::int64_t index : take_all(1, 7)) all.push_back(index);
  for (const std::int64_t index : take_all(5, 8)) all.push_back(index);
  EXPECT_EQ(distinct(all), 87U);
  for (const std::int64_t index : take_all(2, 99)) all.push_back(index);
  EXPECT_EQ(all.size(), 101U);
  EXPECT_EQ(distinct(all), 101U);
}

TEST_P(Resharding, LeavesNothingWhereTheOldRanksHadPadded) {
  static_cast<void>(take_all(10, 11));
  EXPECT_TRUE(take_all(3, 99).empty());
}

TEST_P(Resharding, DealsTheNextEpochInFull) {
  static_cast<void>(take_all(4, 10));
  const auto sampler = GetParam()(0, 3, false);
  sampler->load(state);
  sampler->start_epoch(1);
  const auto fresh = GetParam()(0, 3, false);
  fresh->start_epoch(1);
  EXPECT_EQ(take(*sampler, 99), take(*fresh, 99));
}

}  // namespace
}  // namespace infeed
