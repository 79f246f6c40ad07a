#include "infeed/sampler/weighted.h"

#include <cmath>
#include <limits>

#include "conformance/sampler_conformance.h"

namespace infeed {
namespace {

std::vector<double> ramp(std::int64_t size) {
  std::vector<double> weights;
  for (std::int64_t i = 0; i < size; ++i) weights.push_back(static_cast<double>(i % 13) + 0.25);
  return weights;
}

SamplerCase weighted(const std::string& name, std::int64_t size, std::int64_t num_samples,
                     const WeightedRandomSamplerOptions& options) {
  return {name, size, num_samples, true, [size, num_samples, options] {
            return std::make_unique<WeightedRandomSampler>(ramp(size), num_samples, options);
          }};
}

INSTANTIATE_TEST_SUITE_P(Weighted, SamplerConformance,
                         ::testing::Values(weighted("OneOfOne", 1, 1, {}), weighted("OneOfMany", 100, 1, {.seed = 4}),
                                           weighted("Replacement", 100, 250, {.seed = 3}),
                                           weighted("NoReplacement", 100, 60, {.replacement = false}),
                                           weighted("AllOnce", 100, 100, {.replacement = false, .seed = 5})),
                         sampler_case_name);

std::vector<std::int64_t> epoch(WeightedRandomSampler& sampler, std::uint64_t number) {
  sampler.start_epoch(number);
  std::vector<std::int64_t> order(static_cast<std::size_t>(sampler.size().value()));
  EXPECT_EQ(sampler.next(order), order.size());
  return order;
}

TEST(WeightedRandomSampler, DrawsAsTorchsMultinomial) {
  for (const bool replacement : {false, true}) {
    WeightedRandomSampler sampler(ramp(100), 70, {.replacement = replacement, .seed = 10});
    EXPECT_EQ(epoch(sampler, 5), TorchGenerator(15).multinomial(ramp(100), 70, replacement));
  }
}

TEST(WeightedRandomSampler, NeverDrawsAWeightOfZero) {
  std::vector<double> weights(100, 0.0);
  weights[17] = 1;
  weights[80] = 3;
  WeightedRandomSampler sampler(weights, 4000);
  const auto order = epoch(sampler, 0);
  const auto heavy = std::count(order.begin(), order.end(), 80);
  EXPECT_EQ(heavy + std::count(order.begin(), order.end(), 17), 4000);
  EXPECT_NEAR(static_cast<double>(heavy), 3000, 150);
}

TEST(WeightedRandomSampler, RefusesBadWeights) {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& weights :
       {std::vector<double>{}, {0, 0}, {1, -1}, {1, nan}, {1, infinity}, {1e308, 1e308}})
    EXPECT_THROW(WeightedRandomSampler(weights, 1), ConfigError);
}

TEST(WeightedRandomSampler, RefusesCountsThatCannotBe) {
  EXPECT_THROW(WeightedRandomSampler({1, 2}, 0), ConfigError);
  EXPECT_THROW(WeightedRandomSampler({1, 2}, 3, {.replacement = false}), ConfigError);
  EXPECT_THROW(WeightedRandomSampler({1, 0, 2}, 3, {.replacement = false}), ConfigError);
  EXPECT_NO_THROW(WeightedRandomSampler({1, 0, 2}, 2, {.replacement = false}));
}

}  // namespace
}  // namespace infeed
