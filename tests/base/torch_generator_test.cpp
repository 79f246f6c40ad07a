// Against values of torch 2.13 that torch_golden.py wrote; torch_generator_torch_test compares with the installed one.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/torch_golden.h"
#include "infeed/base/error.h"
#include "infeed/base/rng.h"

namespace infeed {
namespace {

using Indices = std::vector<std::int64_t>;

std::vector<double> weights(int n) {
  std::vector<double> values;
  for (int i = 0; i < n; ++i) values.push_back(i % 13 + 0.25);
  return values;
}

std::uint64_t checksum(const Indices& values) {
  std::uint64_t result = 0;
  for (const std::int64_t value : values) result = result * 31 + static_cast<std::uint64_t>(value);
  return result;
}

const std::map<std::string, std::function<Indices(TorchGenerator&)>>& calls() {
  static const std::map<std::string, std::function<Indices(TorchGenerator&)>> table = {
      {"randperm(10)", [](auto& g) { return g.randperm(10); }},
      {"randperm(100000)", [](auto& g) { return g.randperm(100000); }},
      {"randint(-5, 7, 1000)", [](auto& g) { return g.randint(-5, 7, 1000); }},
      {"randint(0, 1 << 28, 1000)", [](auto& g) { return g.randint(0, 1 << 28, 1000); }},
      {"randint(0, 1 << 40, 1000)", [](auto& g) { return g.randint(0, std::int64_t{1} << 40, 1000); }},
      {"multinomial(1000, 500, true)", [](auto& g) { return g.multinomial(weights(1000), 500, true); }},
      {"multinomial(1000, 500, false)", [](auto& g) { return g.multinomial(weights(1000), 500, false); }},
      {"multinomial(1000, 10, false)", [](auto& g) { return g.multinomial(weights(1000), 10, false); }},
      {"multinomial(1000, 1, true)", [](auto& g) { return g.multinomial(weights(1000), 1, true); }}};
  return table;
}

class TorchGoldenTest : public ::testing::TestWithParam<TorchGolden> {};

INSTANTIATE_TEST_SUITE_P(Torch, TorchGoldenTest, ::testing::ValuesIn(kTorchGoldens));

TEST_P(TorchGoldenTest, GivesTorchsValuesAndPosition) {
  TorchGenerator generator(GetParam().seed);
  EXPECT_EQ(checksum(calls().at(GetParam().call)(generator)), GetParam().checksum) << GetParam().call;
  EXPECT_EQ(generator.random_int64(), GetParam().next) << GetParam().call;
}

TEST(TorchGenerator, GivesThePublishedMt19937Numbers) {  // the 10,000th of the default seed, as in the C++ standard
  TorchGenerator generator(5489);
  generator.discard(9999);
  EXPECT_EQ(generator.random(), 4123659995U);
}

TEST(TorchGenerator, GivesTheSamePermutationInBothWidths) {
  for (const std::size_t n : {0U, 1U, 2U, 5000U}) {
    std::vector<std::int32_t> narrow(n);
    TorchGenerator(1).randperm(std::span(narrow));
    EXPECT_EQ(Indices(narrow.begin(), narrow.end()), TorchGenerator(1).randperm(static_cast<std::int64_t>(n)));
  }
}

TEST(TorchGenerator, DiscardsExactlyWhatACallDraws) {
  TorchGenerator drawn(3);
  TorchGenerator passed(3);
  for (const std::int64_t n : {0, 1, 2, 700, 5000}) {
    static_cast<void>(drawn.randperm(n));
    passed.discard_randperm(n);
    static_cast<void>(drawn.randint(0, std::int64_t{1} << 30, n));
    passed.discard_randint(0, std::int64_t{1} << 30, static_cast<std::uint64_t>(n));
    EXPECT_EQ(drawn.random(), passed.random()) << n;
  }
}

TEST(TorchGenerator, StartsAgainWhenSeeded) {
  TorchGenerator generator(8);
  const std::uint64_t first = generator.random64();
  generator.discard(1000);
  generator.manual_seed(8);
  EXPECT_EQ(generator.random64(), first);
  EXPECT_EQ(generator.initial_seed(), 8U);
}

TEST(TorchGenerator, DrawsUniformsBelowOne) {
  TorchGenerator generator(2);
  for (int i = 0; i < 10000; ++i) {
    const double wide = generator.uniform_double();
    const float narrow = generator.uniform_float();
    ASSERT_TRUE(wide >= 0 && wide < 1 && narrow >= 0 && narrow < 1);
  }
}

TEST(TorchGenerator, RefusesImpossibleArguments) {
  TorchGenerator generator(1);
  EXPECT_THROW(static_cast<void>(generator.randperm(-1)), ConfigError);
  EXPECT_THROW(static_cast<void>(generator.randint(3, 3, 1)), ConfigError);
  EXPECT_THROW(static_cast<void>(generator.randint(0, 3, -1)), ConfigError);
  const std::vector<double> two = {1, 2};
  EXPECT_THROW(static_cast<void>(generator.multinomial(two, 0, true)), ConfigError);
  EXPECT_THROW(static_cast<void>(generator.multinomial(two, 3, false)), ConfigError);
  EXPECT_THROW(static_cast<void>(generator.multinomial({}, 1, true)), ConfigError);
}

}  // namespace
}  // namespace infeed
