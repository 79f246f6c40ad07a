#include "transform/taps.h"

#include <numeric>

namespace infeed {
namespace {

TapTable table_of(const PlanBuilder& builder, bool reversed = false, int max_shift = 16) {
  const FusedPlan plan = builder.finish();
  TapTable table;
  table.build({.axis = plan.horizontal,
               .held_begin = plan.window.x,
               .held_size = plan.window.width,
               .reversed = reversed,
               .max_shift = max_shift},
              TapTable::Grouping::kNone);
  return table;
}

PlanBuilder resized(int from, int to) {
  PlanBuilder plan(from, 1);
  plan.resize(to, 1);
  return plan;
}

int weight_sum(const TapTable& table, int output) {
  const std::int16_t* weights = table.weights.data() + output * table.stride;
  return std::accumulate(weights, weights + table.stride, 0);
}

TEST(TapTableTest, SumsToExactlyOne) {
  for (const auto& [from, to] : {std::pair{100, 99}, {375, 224}, {50, 224}, {3, 7}, {10'000, 9}, {1, 5}}) {
    const TapTable table = table_of(resized(from, to));
    for (int i = 0; i < to; ++i) ASSERT_EQ(weight_sum(table, i), 1 << table.shift) << from << " -> " << to;
  }
}

TEST(TapTableTest, StaysWithinTheWindow) {
  for (const auto& [from, to] : {std::pair{100, 99}, {375, 224}, {50, 224}, {3, 7}, {10'000, 9}, {1, 5}}) {
    const TapTable table = table_of(resized(from, to));
    for (std::size_t i = 0; i < static_cast<std::size_t>(to); ++i) {
      ASSERT_GE(table.start[i], 0);
      ASSERT_GE(table.count[i], 1);
      ASSERT_LE(table.start[i] + table.count[i], table.extent);
    }
    ASSERT_LE(table.first + table.extent, from);
  }
}

TEST(TapTableTest, HasOneTapWhereNothingIsResampled) {
  const TapTable table = table_of(PlanBuilder(40, 1));
  EXPECT_EQ(table.taps, 1);
  EXPECT_EQ(table.shift, 14);  // a weight of one must fit
}

TEST(TapTableTest, GivesSmallWeightsMoreBits) {
  EXPECT_EQ(table_of(resized(1000, 10), false, 23).shift, 21);
  EXPECT_EQ(table_of(resized(1000, 10), false, 16).shift, 16);
}

TEST(TapTableTest, HasNoTapsInPadding) {
  PlanBuilder plan(20, 1);
  plan.center_crop({.height = 1, .width = 30});
  const TapTable table = table_of(plan);
  EXPECT_EQ(table.count[0], 0);
  EXPECT_EQ(table.count[5], 1);
  EXPECT_EQ(table.count[29], 0);
  EXPECT_EQ(weight_sum(table, 0), 0);
}

TEST(TapTableTest, ReversesTheOutputsForAFlip) {
  const TapTable plain = table_of(resized(100, 37)), reversed = table_of(resized(100, 37), true);
  for (std::size_t i = 0; i < 37; ++i) {
    EXPECT_EQ(plain.start[i], reversed.start[36 - i]);
    EXPECT_EQ(plain.count[i], reversed.count[36 - i]);
  }
}

TEST(TapTableTest, PadsItsOutputsToWholeGroups) {
  const TapTable table = table_of(resized(100, 37));
  EXPECT_EQ(table.start.size(), 48U);
  EXPECT_EQ(table.weights.size(), 48U * static_cast<std::size_t>(table.stride));
  EXPECT_EQ(weight_sum(table, 40), 0);
}

}  // namespace
}  // namespace infeed
