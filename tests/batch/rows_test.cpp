#include "batch/rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "support/aligned.h"

namespace infeed {
namespace {

TEST(RowWriter, WritesRowsAtTheirFinalPlace) {
  const BatchLayout layout(Schema{{"x", DType::kInt32, {2}}, {"y", DType::kInt64, {}}}, 3);
  testing::AlignedBytes extent(layout.nbytes());
  RowWriter writer(layout);
  for (const int r : {2, 0, 1}) {
    const Row row = writer.row(extent.data(), r, {.index = 10 + r});
    row[0].as<std::int32_t>()[1] = r;
    row.set<std::int64_t>(1, row.index());
  }
  const auto arrays = layout.arrays(extent.data(), 3);
  for (int r = 0; r < 3; ++r) {
    EXPECT_EQ(arrays[0].array.at(r).as<std::int32_t>()[1], r);
    EXPECT_EQ(arrays[1].array.as<std::int64_t>()[r], 10 + r);
  }
}

class RowGatherTest : public ::testing::Test {
 protected:
  void add(std::int64_t index, std::int64_t length) {
    Row row = gather.start_row({.index = index});
    const ArrayView& tokens = row.resize(0, {length});
    std::fill_n(tokens.as<std::int32_t>(), length, static_cast<std::int32_t>(index));
    row.set<std::int64_t>(1, index);
    gather.commit_row();
  }
  RowGather gather{Schema{{"tokens", DType::kInt32, {-1}}, {"label", DType::kInt64, {}}}};
};

TEST_F(RowGatherTest, KeepsEveryRowOfTheBatch) {
  gather.start_batch();
  for (int i = 0; i < 300; ++i) add(i, 37 * i);
  ASSERT_EQ(gather.num_rows(), 300U);
  for (int i = 1; i < 300; ++i) {
    const ArrayView& tokens = gather.fields()[0][static_cast<std::size_t>(i)];
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tokens.data) % 64, 0U);
    EXPECT_EQ(tokens.as<std::int32_t>()[37 * i - 1], i);
  }
}

TEST_F(RowGatherTest, DropsRowsThatWereNotCommitted) {
  gather.start_batch();
  add(1, 2);
  static_cast<void>(gather.start_row({.index = 2}));
  add(3, 4);
  ASSERT_EQ(gather.num_rows(), 2U);
  EXPECT_EQ(gather.fields()[1][1].as<std::int64_t>()[0], 3);
}

TEST_F(RowGatherTest, RefusesARowWhoseVariableFieldWasLeftOut) {
  gather.start_batch();
  static_cast<void>(gather.start_row({.index = 5}));
  EXPECT_THROW(gather.commit_row(), DataError);
  EXPECT_EQ(gather.num_rows(), 0U);
}

TEST_F(RowGatherTest, TakesTheSecondSizeOfAField) {
  gather.start_batch();
  Row row = gather.start_row({.index = 0});
  const std::byte* first = row.resize(0, {1000}).data;
  EXPECT_EQ(row.resize(0, {2}).data, first);
  gather.commit_row();
  EXPECT_EQ(gather.fields()[0][0].shape, (Shape{2}));
}

TEST_F(RowGatherTest, ReusesItsMemoryFromBatchToBatch) {
  for (int batch = 0; batch < 3; ++batch) {
    gather.start_batch();
    for (int i = 0; i < 100; ++i) add(i, 1000);
  }
  gather.start_batch();
  add(0, 10);
  const std::byte* first = gather.fields()[0][0].data;
  gather.start_batch();
  add(0, 10);
  EXPECT_EQ(gather.fields()[0][0].data, first);
}

TEST_F(RowGatherTest, ShrinksAfterAGiantBatch) {
  gather.start_batch();
  add(0, 10'000'000);
  EXPECT_GT(gather.nbytes(), 40'000'000U);
  for (int batch = 0; batch < 100; ++batch) {
    gather.start_batch();
    add(0, 10);
  }
  EXPECT_LT(gather.nbytes(), 1'000'000U);
}

}  // namespace
}  // namespace infeed
