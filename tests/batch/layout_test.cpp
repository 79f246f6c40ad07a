#include "batch/layout.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "support/aligned.h"

namespace infeed {
namespace {

using testing::AlignedBytes;

class BatchLayoutTest : public ::testing::Test {
 protected:
  BatchLayout layout{
      Schema{{"image", DType::kUInt8, {3, 5}}, {"label", DType::kInt64, {}}, {"w", DType::kFloat32, {2}}}, 10};
};

TEST_F(BatchLayoutTest, PutsEachFieldAtAMultipleOf128) {
  EXPECT_EQ(layout.offset(0), 0U);
  EXPECT_EQ(layout.offset(1), 256U);
  EXPECT_EQ(layout.offset(2), 384U);
  EXPECT_EQ(layout.row_bytes(0), 15U);
  EXPECT_EQ(layout.nbytes(), 384U + 80U);
  EXPECT_EQ(layout.nbytes(3), 384U + 24U);
  EXPECT_EQ(layout.nbytes(0), 0U);
}

TEST_F(BatchLayoutTest, RowsAreItemsOfTheConsumersArrays) {
  AlignedBytes extent(layout.nbytes());
  std::vector<ArrayView> row(3);
  const auto arrays = layout.arrays(extent.data(), 7);
  for (int r = 0; r < 7; ++r) {
    layout.fill_row_views(extent.data(), r, row);
    for (std::size_t f = 0; f < 3; ++f) {
      EXPECT_EQ(row[f].data, arrays[f].array.at(r).data);
      EXPECT_EQ(row[f].shape, arrays[f].array.at(r).shape);
    }
  }
}

TEST_F(BatchLayoutTest, MovesViewsFromRowToRow) {
  AlignedBytes extent(layout.nbytes());
  std::vector<ArrayView> moved(3), filled(3);
  layout.fill_row_views(extent.data(), 0, moved);
  layout.move_row_views(extent.data(), 9, moved);
  layout.fill_row_views(extent.data(), 9, filled);
  for (std::size_t f = 0; f < 3; ++f) EXPECT_EQ(moved[f].data, filled[f].data);
}

TEST_F(BatchLayoutTest, NamesTheConsumersArrays) {
  AlignedBytes extent(layout.nbytes());
  const auto arrays = layout.arrays(extent.data(), 4);
  EXPECT_EQ(arrays[0].name, "image");
  EXPECT_EQ(arrays[0].array.shape, (Shape{4, 3, 5}));
  EXPECT_EQ(arrays[2].array.dtype, DType::kFloat32);
}

TEST(BatchLayout, RefusesWhatHasNoFixedPlace) {
  EXPECT_THROW(BatchLayout(Schema{{"x", DType::kInt8, {-1}}}, 4), ConfigError);
  EXPECT_THROW(BatchLayout(Schema{{"x", DType::kInt8, {2}}}, 0), ConfigError);
  EXPECT_THROW(BatchLayout(Schema{{"x", DType::kInt8, {1LL << 60}}}, 1 << 20), ConfigError);
  EXPECT_THROW(BatchLayout(Schema{{"x", DType::kInt8, {1, 1, 1, 1, 1, 1, 1, 1}}}, 2), ConfigError);
}

TEST(BatchLayout, AllowsFieldsWithoutBytesAndNoFields) {
  EXPECT_EQ(BatchLayout(Schema{{"x", DType::kInt8, {0, 3}}}, 4).nbytes(), 0U);
  EXPECT_EQ(BatchLayout(Schema{}, 4).nbytes(), 0U);
}

}  // namespace
}  // namespace infeed
