#include "infeed/base/shape.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(Shape, CountsElements) {
  EXPECT_EQ((Shape{3, 224, 224}).numel(), 150528);
  EXPECT_EQ((Shape{}).numel(), 1);
  EXPECT_EQ((Shape{5, 0, 7}).numel(), 0);
}

TEST(Shape, RefusesToCountWhatItCannot) {
  EXPECT_THROW(static_cast<void>((Shape{3, -1}).numel()), ConfigError);
  EXPECT_THROW(static_cast<void>((Shape{kMax, 2}).numel()), ConfigError);
}

TEST(Shape, GainsAndLosesItsFront) {
  EXPECT_EQ((Shape{3, 4}).with_front(8), (Shape{8, 3, 4}));
  EXPECT_EQ((Shape{8, 3, 4}).without_front(), (Shape{3, 4}));
  EXPECT_EQ((Shape{}).with_front(8), Shape{8});
  EXPECT_THROW(static_cast<void>((Shape{}).without_front()), ConfigError);
}

TEST(Shape, HasAtMostEightDimensions) {
  Shape eight{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(eight.ndim(), 8);
  EXPECT_THROW(eight.push_back(9), ConfigError);
  EXPECT_THROW(static_cast<void>(eight.with_front(9)), ConfigError);
  EXPECT_THROW(Shape(std::vector<std::int64_t>(9, 1)), ConfigError);
}

TEST(Shape, PrintsAsInPython) {
  EXPECT_EQ((Shape{3, 224, 224}).str(), "[3, 224, 224]");
  EXPECT_EQ((Shape{}).str(), "[]");
}

TEST(Shape, ComparesSizesOnly) {
  Shape shrunk{1, 2, 3};
  shrunk = shrunk.without_front();
  EXPECT_EQ(shrunk, (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{2, 3, 1}));
}

TEST(Strides, AreCOrderWhenContiguous) {
  EXPECT_EQ(Strides::contiguous({8, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(Strides::contiguous({2, 0, 4}), (Strides{4, 4, 1}));
  EXPECT_EQ(Strides::contiguous({}), Strides{});
}

TEST(Strides, SurviveAShapeThatIsTooLarge) { EXPECT_EQ(Strides::contiguous({kMax, kMax, 2}).ndim(), 3); }

}  // namespace
}  // namespace infeed
