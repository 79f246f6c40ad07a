#include "infeed/sampler/subset.h"

#include "conformance/sampler_conformance.h"
#include "infeed/base/rng.h"

namespace infeed {
namespace {

std::vector<std::int64_t> odd_numbers(std::int64_t count) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(2 * i + 1);
  return numbers;
}

SamplerCase subset(const std::string& name, std::int64_t count) {
  return {name, 2 * count, count, true,
          [count] { return std::make_unique<SubsetRandomSampler>(odd_numbers(count), 8); }};
}

INSTANTIATE_TEST_SUITE_P(Subset, SamplerConformance,
                         ::testing::Values(subset("Empty", 0), subset("One", 1), subset("Hundred", 100)),
                         sampler_case_name);

TEST(SubsetRandomSampler, ShufflesTheGivenIndicesAsTorch) {
  SubsetRandomSampler sampler(odd_numbers(50), 3);
  sampler.start_epoch(1);
  std::vector<std::int64_t> order(50);
  ASSERT_EQ(sampler.next(order), 50U);
  const auto permutation = TorchGenerator(4).randperm(50);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(order[i], 2 * permutation[i] + 1);
}

TEST(SubsetRandomSampler, RefusesANegativeIndex) { EXPECT_THROW(SubsetRandomSampler({3, -1}), ConfigError); }

TEST(SubsetRandomSampler, RefusesTheStateOfOtherIndices) {
  State state;
  SubsetRandomSampler({1, 2, 3}).save(state);
  SubsetRandomSampler other({1, 2, 4});
  EXPECT_THROW(other.load(state), StateError);
}

}  // namespace
}  // namespace infeed
