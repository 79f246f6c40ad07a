#include "infeed/base/array_view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "infeed/base/error.h"

namespace infeed {
namespace {

/// 24 floats seen as [2, 3, 4].
class ArrayViewTest : public ::testing::Test {
 protected:
  ArrayViewTest() { std::iota(values.begin(), values.end(), 0.0F); }
  std::vector<float> values = std::vector<float>(24);
  ArrayView view{values.data(), DType::kFloat32, Shape{2, 3, 4}};
};

TEST_F(ArrayViewTest, KnowsItsExtent) {
  EXPECT_EQ(view.numel(), 24);
  EXPECT_EQ(view.nbytes(), 96U);
  EXPECT_EQ(view.strides, (Strides{12, 4, 1}));
  EXPECT_TRUE(view.is_contiguous());
  EXPECT_EQ(view.device, DeviceId{});
}

TEST_F(ArrayViewTest, GivesItemsAlongTheFirstDimension) {
  const ArrayView row = view.at(1).at(2);
  EXPECT_EQ(row.shape, Shape{4});
  EXPECT_EQ(row.as<float>()[0], 20.0F);
  EXPECT_EQ(row.at(3).as<float>()[0], 23.0F);
  EXPECT_EQ(row.at(3).shape, Shape{});
}

TEST_F(ArrayViewTest, RefusesIndicesOutside) {
  EXPECT_THROW(static_cast<void>(view.at(2)), IndexError);
  EXPECT_THROW(static_cast<void>(view.at(-1)), IndexError);
  EXPECT_THROW(static_cast<void>(view.at(0).at(0).at(0).at(0)), IndexError);
}

TEST_F(ArrayViewTest, RefusesAnotherType) {
  EXPECT_THROW(static_cast<void>(view.as<std::int32_t>()), ConfigError);
  EXPECT_THROW(static_cast<void>(view.as<double>()), ConfigError);
}

TEST_F(ArrayViewTest, SeesGaps) {
  view.strides = Strides{24, 4, 1};
  EXPECT_FALSE(view.is_contiguous());
  view.shape = Shape{1, 3, 4};  // the stride of a dimension of one is never used
  EXPECT_TRUE(view.is_contiguous());
  view.strides = Strides{1, 1, 3};
  EXPECT_FALSE(view.is_contiguous());
  view.shape = Shape{0, 3, 4};  // nothing to have gaps between
  EXPECT_TRUE(view.is_contiguous());
}

TEST(ArrayView, IsEmptyWithoutData) {
  const ArrayView nothing(nullptr, DType::kUInt8, Shape{0, 3});
  EXPECT_EQ(nothing.nbytes(), 0U);
  EXPECT_TRUE(nothing.is_contiguous());
  EXPECT_THROW(static_cast<void>(nothing.at(0)), IndexError);
}

}  // namespace
}  // namespace infeed
