#include "infeed/sampler/feistel.h"

#include <cmath>
#include <map>
#include <numeric>

#include "conformance/sampler_conformance.h"
#include "sampler/feistel_cipher.h"

namespace infeed {
namespace {

using Indices = std::vector<std::int64_t>;

SamplerCase feistel(const std::string& name, std::int64_t size, std::int64_t count,
                    const FeistelSamplerOptions& options) {
  return {name, size, count, true, [size, options] { return std::make_unique<FeistelSampler>(size, options); }};
}

INSTANTIATE_TEST_SUITE_P(Feistel, SamplerConformance,
                         ::testing::Values(feistel("Empty", 0, 0, {}), feistel("One", 1, 1, {}),
                                           feistel("Thousand", 1000, 1000, {.seed = 3}),
                                           feistel("PowerOfTwo", 4096, 4096, {.seed = 3}),
                                           feistel("Padded", 100, 34, {.seed = 4, .rank = 2, .world_size = 3}),
                                           feistel("Cut", 100, 33, {.rank = 1, .world_size = 3, .drop_last = true})),
                         sampler_case_name);

Indices permutation(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) {
  Indices values(static_cast<std::size_t>(size));
  std::iota(values.begin(), values.end(), 0);
  FeistelCipher(size, seed, epoch).permute(values);
  return values;
}

/// Sum of (observed - expected)^2 / expected; its mean is the number of counts less one.
double chi_square(const std::vector<int>& counts) {
  const double expected = std::accumulate(counts.begin(), counts.end(), 0.0) / static_cast<double>(counts.size());
  return std::accumulate(counts.begin(), counts.end(), 0.0, [&](double sum, int count) {
    return sum + (count - expected) * (count - expected) / expected;
  });
}

/// Six standard deviations above the mean of a chi-square of that many counts.
double chi_square_limit(std::size_t counts) {
  const double freedom = static_cast<double>(counts) - 1;
  return freedom + 6 * std::sqrt(2 * freedom);
}

TEST(FeistelCipher, PermutesAnySize) {
  for (std::int64_t size : {1, 2, 3, 5, 16, 17, 255, 256, 257, 1000, 4095, 65536, 65537, 1048579}) {
    Indices values = permutation(size, 1, 2);
    std::sort(values.begin(), values.end());
    for (std::int64_t i = 0; i < size; ++i) ASSERT_EQ(values[static_cast<std::size_t>(i)], i) << "size " << size;
  }
}

TEST(FeistelCipher, StaysInRangeForHugeSizes) {
  for (const int bits : {31, 32, 33, 40, 53, 61}) {
    const std::int64_t size = (std::int64_t{1} << bits) + 12345;
    Indices values;
    for (std::int64_t i = 0; i < 1000; ++i) values.push_back(size / 1000 * i);
    FeistelCipher(size, 7, 0).permute(values);
    for (const std::int64_t value : values) ASSERT_TRUE(value >= 0 && value < size) << bits;
    std::sort(values.begin(), values.end());
    EXPECT_EQ(std::adjacent_find(values.begin(), values.end()), values.end()) << bits;
  }
}

TEST(FeistelCipher, GivesTheSameImagesInAnyGrouping) {
  const Indices whole = permutation(3000, 5, 5);
  const FeistelCipher cipher(3000, 5, 5);
  for (std::int64_t i = 0; i < 3000; ++i) {
    std::int64_t value = i;
    cipher.permute(std::span(&value, 1));
    ASSERT_EQ(value, whole[static_cast<std::size_t>(i)]);
  }
}

TEST(FeistelCipher, NeverChangesItsOrders) {  // a checkpoint of last year must resume today
  EXPECT_EQ(permutation(10, 0, 0), Indices({2, 9, 3, 5, 1, 8, 4, 0, 7, 6}));
  EXPECT_EQ(permutation(1000000, 1, 2)[123456], 373306);
}

TEST(FeistelCipher, PutsEachSampleFirstEquallyOften) {
  for (const std::int64_t size : {7, 50, 1000}) {
    std::vector<int> counts(static_cast<std::size_t>(size));
    for (std::uint64_t epoch = 0; epoch < 40U * static_cast<std::uint64_t>(size); ++epoch) {
      std::int64_t first = 0;
      FeistelCipher(size, 11, epoch).permute(std::span(&first, 1));
      ++counts[static_cast<std::size_t>(first)];
    }
    EXPECT_LT(chi_square(counts), chi_square_limit(counts.size())) << "size " << size;
  }
}

TEST(FeistelCipher, GivesAllOrdersOfFiveEquallyOften) {
  std::map<Indices, int> orders;
  for (std::uint64_t epoch = 0; epoch < 24000; ++epoch) ++orders[permutation(5, 3, epoch)];
  std::vector<int> counts;
  for (const auto& [order, count] : orders) counts.push_back(count);
  EXPECT_EQ(counts.size(), 120U);
  EXPECT_LT(chi_square(counts), chi_square_limit(120));
}

TEST(FeistelCipher, GivesSeedsUnrelatedOrders) {
  int equal_places = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Indices a = permutation(500, seed, 0);
    const Indices b = permutation(500, seed + 1, 0);
    for (std::size_t i = 0; i < a.size(); ++i) equal_places += a[i] == b[i] ? 1 : 0;
  }
  EXPECT_NEAR(equal_places, 200, 6 * std::sqrt(200.0));  // one per pair of permutations is what chance gives
}

TEST(FeistelCipher, KeepsNoneOfTheFileOrder) {
  constexpr std::int64_t kSize = 100000;
  const Indices order = permutation(kSize, 21, 4);
  int fixed = 0;
  int rises = 0;
  std::vector<int> steps(64);
  for (std::size_t i = 0; i + 1 < order.size(); ++i) {
    fixed += order[i] == static_cast<std::int64_t>(i) ? 1 : 0;
    rises += order[i] < order[i + 1] ? 1 : 0;
    ++steps[static_cast<std::size_t>((order[i + 1] - order[i] + kSize) % kSize * 64 / kSize)];
  }
  EXPECT_LT(fixed, 8);                                           // Poisson with mean 1
  EXPECT_NEAR(rises, kSize / 2, 6 * std::sqrt(kSize / 12.0));    // variance (n + 1) / 12
  EXPECT_LT(chi_square(steps), chi_square_limit(steps.size()));  // neighbours are unrelated
}

TEST(FeistelCipher, SpreadsEveryTenthOfTheSetOverTheWholeEpoch) {
  const Indices order = permutation(100000, 2, 0);
  for (int window = 0; window < 10; ++window) {
    std::vector<int> counts(10);
    for (int i = 0; i < 10000; ++i)
      ++counts[static_cast<std::size_t>(order[static_cast<std::size_t>(window * 10000 + i)] / 10000)];
    EXPECT_LT(chi_square(counts), chi_square_limit(10)) << "window " << window;
  }
}

TEST(FeistelSampler, DealsOnePermutationToItsRanks) {
  const Indices whole = permutation(100, 5, 1);
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    FeistelSampler sampler(100, {.seed = 5, .rank = rank, .world_size = 3});
    sampler.start_epoch(1);
    Indices part(50);
    part.resize(sampler.next(part));
    ASSERT_EQ(part.size(), 34U);
    for (std::size_t i = 0; i < part.size(); ++i)
      EXPECT_EQ(part[i], whole[(3 * i + static_cast<std::size_t>(rank)) % 100]);
  }
}

TEST(FeistelSampler, NeedsNoMemoryForAnySize) {
  FeistelSampler sampler(std::int64_t{1} << 60);
  EXPECT_EQ(sampler.skip(std::int64_t{1} << 59), std::int64_t{1} << 59);
  Indices part(10);
  EXPECT_EQ(sampler.next(part), 10U);
}

TEST(FeistelSampler, RefusesImpossibleOptions) {
  EXPECT_THROW(FeistelSampler(-1), ConfigError);
  EXPECT_THROW(FeistelSampler(std::int64_t{1} << 62), ConfigError);
  EXPECT_THROW(FeistelSampler(10, {.rank = 3, .world_size = 3}), ConfigError);
}

}  // namespace
}  // namespace infeed
