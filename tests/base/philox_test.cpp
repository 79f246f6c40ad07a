#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "infeed/base/rng.h"

namespace infeed {
namespace {

struct Vector {
  std::array<std::uint32_t, 4> counter;
  std::array<std::uint32_t, 2> key;
  std::array<std::uint32_t, 4> result;
};

TEST(Philox, GivesThePublishedVectors) {  // Random123, kat_vectors, philox4x32 with 10 rounds
  const Vector vectors[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
                            {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                             {0xffffffff, 0xffffffff},
                             {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
                            {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                             {0xa4093822, 0x299f31d0},
                             {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const Vector& vector : vectors) EXPECT_EQ(Philox::block(vector.counter, vector.key), vector.result);
}

TEST(Philox, RepeatsForTheSameKey) {
  Philox a(1, 2, 3);
  Philox b(1, 2, 3);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(a.next_u64(), b.next_u64());
}

TEST(Philox, DiffersInSeedEpochAndIndex) {
  std::set<std::uint64_t> firsts;
  for (std::uint64_t seed = 0; seed < 10; ++seed)
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch)
      for (std::uint64_t index = 0; index < 100; ++index) firsts.insert(Philox(seed, epoch, index).next_u64());
  EXPECT_EQ(firsts.size(), 10000U);
}

TEST(Philox, NeverChangesItsStreams) {  // crops of a resumed run must be those of the run that was saved
  Philox philox(7, 1, 99);
  EXPECT_EQ(philox.next_u64(), 5661352770327047301U);
  EXPECT_EQ(philox.below(1000), 166U);
  EXPECT_EQ(philox.next_u32(), 3534965698U);
}

TEST(Philox, SpreadsUniforms) {
  Philox philox(0, 0, 0);
  std::vector<int> tenths(10);
  for (int i = 0; i < 100000; ++i) {
    const double value = philox.uniform();
    ASSERT_TRUE(value >= 0 && value < 1);
    ++tenths[static_cast<std::size_t>(value * 10)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 10000, 600);
}

TEST(Philox, DrawsBelowAnyBoundWithoutBias) {
  Philox philox(0, 0, 1);
  std::vector<int> counts(3);
  const std::uint64_t third = ~std::uint64_t{0} / 3 + 1;
  for (int i = 0; i < 30000; ++i) ++counts[philox.below(2 * third) < third ? 0 : 1];
  EXPECT_NEAR(counts[0], counts[1], 1100);
  for (int i = 0; i < 1000; ++i) ASSERT_LT(philox.below(7), 7U);
  EXPECT_EQ(philox.below(1), 0U);
}

TEST(Philox, IsTrueAsOftenAsAsked) {
  Philox philox(0, 0, 2);
  int heads = 0;
  for (int i = 0; i < 10000; ++i) heads += philox.bernoulli(0.3) ? 1 : 0;
  EXPECT_NEAR(heads, 3000, 280);
  EXPECT_FALSE(philox.bernoulli(0));
  EXPECT_TRUE(philox.bernoulli(1));
}

}  // namespace
}  // namespace infeed
