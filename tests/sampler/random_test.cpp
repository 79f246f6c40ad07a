#include "infeed/sampler/random.h"

#include "conformance/sampler_conformance.h"

namespace infeed {
namespace {

SamplerCase random(const std::string& name, std::int64_t size, const RandomSamplerOptions& options) {
  return {name, size, options.num_samples.value_or(size), true,
          [size, options] { return std::make_unique<RandomSampler>(size, options); }};
}

INSTANTIATE_TEST_SUITE_P(
    Random, SamplerConformance,
    ::testing::Values(random("Empty", 0, {}), random("One", 1, {}), random("Thousand", 1000, {.seed = 9}),
                      random("Fewer", 100, {.num_samples = 30}),
                      random("ThreeAndAHalfPasses", 100, {.num_samples = 350}),
                      random("TwoWholePasses", 50, {.seed = 1, .num_samples = 100}),
                      random("Replacement", 100, {.seed = 2, .replacement = true}),
                      random("ReplacementOfAHugeSet", std::int64_t{1} << 40, {.replacement = true, .num_samples = 500}),
                      random("LargestSeed", 64, {.seed = ~std::uint64_t{0}})),
    sampler_case_name);

std::vector<std::int64_t> epoch(RandomSampler& sampler, std::uint64_t number) {
  sampler.start_epoch(number);
  std::vector<std::int64_t> order(static_cast<std::size_t>(sampler.size().value()));
  EXPECT_EQ(sampler.next(order), order.size());
  return order;
}

TEST(RandomSampler, ShufflesAsTorchSeededWithSeedPlusEpoch) {
  RandomSampler sampler(1000, {.seed = 40});
  TorchGenerator torch(42);
  EXPECT_EQ(epoch(sampler, 2), torch.randperm(1000));
}

TEST(RandomSampler, YieldsEachIndexOncePerPass) {
  RandomSampler sampler(100, {.num_samples = 250});
  const auto order = epoch(sampler, 0);
  std::vector<int> seen(100);
  for (std::size_t i = 0; i < 200; ++i) ++seen[static_cast<std::size_t>(order[i])];
  EXPECT_EQ(seen, std::vector<int>(100, 2));
}

TEST(RandomSampler, FollowsOnePassWithTorchsNext) {
  RandomSampler sampler(100, {.num_samples = 250});
  TorchGenerator torch(0);
  std::vector<std::int64_t> expected;
  for (int pass = 0; pass < 3; ++pass)
    for (const std::int64_t index : torch.randperm(100)) expected.push_back(index);
  expected.resize(250);
  EXPECT_EQ(epoch(sampler, 0), expected);
}

TEST(RandomSampler, RefusesWhatCannotBeDrawn) {
  EXPECT_THROW(RandomSampler(-1), ConfigError);
  EXPECT_THROW(RandomSampler(10, {.num_samples = 0}), ConfigError);
  EXPECT_THROW(RandomSampler(10, {.num_samples = -3}), ConfigError);
  EXPECT_THROW(RandomSampler(0, {.num_samples = 3}), ConfigError);
}

TEST(RandomSampler, NamesBothSeedsWhenTheyDiffer) {
  State state;
  RandomSampler(10, {.seed = 3}).save(state);
  RandomSampler other(10, {.seed = 4});
  try {
    other.load(state);
    FAIL() << "took up the state of another seed";
  } catch (const StateError& error) {
    EXPECT_NE(std::string(error.what()).find("seed = 3, this one has 4"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace infeed
