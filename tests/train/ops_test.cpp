#include "infeed/train/autograd/ops.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "infeed/base/error.h"
#include "train/values.h"

namespace infeed {
namespace {

const Tensor kRow = Tensor::from_values({1.0f, 2.0f, 3.0f});
const Tensor kColumn = Tensor::from_values({10.0f, 20.0f}, {2, 1});

TEST(OpsTest, BroadcastsBothSides) {
  EXPECT_EQ(values_of(kRow + kColumn), (std::vector<double>{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(values_of(kColumn - kRow), (std::vector<double>{9, 8, 7, 19, 18, 17}));
}

TEST(OpsTest, TakesScalarsOnEitherSide) {
  EXPECT_EQ(values_of(1.0 - kRow), (std::vector<double>{0, -1, -2}));
  EXPECT_EQ(values_of(kRow * 2.0 + 1.0), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(values_of(6.0 / kRow), (std::vector<double>{6, 3, 2}));
}

TEST(OpsTest, KeepsChannelsLast) {
  const Tensor image = spread_values({2, 3, 4, 5}).contiguous(MemoryFormat::kChannelsLast);
  EXPECT_TRUE((image * image).is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_TRUE(relu(image + kRow.view({1, 3, 1, 1})).is_contiguous(MemoryFormat::kChannelsLast));
}

TEST(OpsTest, MixesMemoryFormatsByLogicalIndex) {
  const Tensor image = spread_values({2, 3, 4, 5});
  EXPECT_EQ(values_of(image.contiguous(MemoryFormat::kChannelsLast) + image), values_of(image + image));
}

TEST(OpsTest, SumsAnyDimensionsOfAnyLayout) {
  const Tensor t = Tensor::arange(24, DType::kFloat32).view({2, 3, 4});
  EXPECT_EQ(values_of(sum(t, {1})), (std::vector<double>{12, 15, 18, 21, 48, 51, 54, 57}));
  EXPECT_EQ(values_of(sum(t, {0, 2})), (std::vector<double>{60, 92, 124}));
  EXPECT_EQ(values_of(sum(t.transpose(0, 2), {0, 2})), (std::vector<double>{60, 92, 124}));
  EXPECT_EQ(sum(t, {-1}, true).shape(), (Shape{2, 3, 1}));
}

TEST(OpsTest, SumsLongRangesAccurately) {
  const Tensor t = Tensor::full({3'000'001}, 0.1);
  EXPECT_NEAR(sum(t).item(), 300'000.1, 0.05);
  EXPECT_NEAR(mean(t.narrow(0, 0, 3'000'000).view({100'000, 30}), {0}).select(0, 7).item(), 0.1, 1e-6);
}

TEST(OpsTest, CountsEqualElements) {
  const Tensor hits = eq(argmax(Tensor::from_values({0.f, 2.f, 1.f, 3.f, 1.f, 2.f}, {2, 3}), 1),
                         Tensor::from_values<std::int64_t>({1, 2}));
  EXPECT_EQ(hits.dtype(), DType::kBool);
  EXPECT_EQ(sum(hits).item<int>(), 1);
}

TEST(OpsTest, FindsTheLargestAlongAnyDimension) {
  const Tensor t = Tensor::from_values({1.f, 5.f, 3.f, 7.f, 5.f, 2.f}, {2, 3});
  EXPECT_EQ(values_of(argmax(t, 0)), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(values_of(argmax(t.view({1, 2, 3}), 1)), (std::vector<double>{1, 0, 0}));
  EXPECT_EQ(max(t).item(), 7.0);
}

TEST(OpsTest, LetsNanThrough) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor t = Tensor::from_values({1.0f, nan, 2.0f});
  EXPECT_TRUE(std::isnan(relu(t).select(0, 1).item()));
  EXPECT_TRUE(std::isnan(max(t).item()));
}

TEST(OpsTest, MultipliesIntegersAsIntegers) {
  const Tensor t = Tensor::arange(3);
  EXPECT_EQ((t * t + 1.0).dtype(), DType::kInt64);
  EXPECT_EQ(values_of(t * t + 1.0), (std::vector<double>{1, 2, 5}));
  EXPECT_THROW((void)(t * 0.5), ConfigError);
  EXPECT_THROW((void)(t / t), ConfigError);
}

TEST(OpsTest, MultipliesMatricesOfAllRanks) {
  const Tensor a = Tensor::arange(6, DType::kFloat32).view({2, 3});
  EXPECT_EQ(values_of(matmul(a, kRow)), (std::vector<double>{8, 26}));
  EXPECT_EQ(matmul(kRow, kRow).item(), 14.0);
  EXPECT_EQ(values_of(matmul(kRow, a.t())), (std::vector<double>{8, 26}));
  EXPECT_EQ(matmul(Tensor::ones({4, 2, 3}), Tensor::ones({3, 5})).shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(matmul(Tensor::ones({4, 1, 2, 3}), Tensor::ones({6, 3, 5})).shape(), (Shape{4, 6, 2, 5}));
}

TEST(OpsTest, NamesOperationAndShapesOnMismatch) {
  try {
    (void)(kRow + Tensor::zeros({2, 4}));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("add: shapes [3] and [2, 4]"), std::string::npos) << error.what();
  }
  EXPECT_THROW((void)matmul(kRow, Tensor::zeros({2, 4})), ConfigError);
  EXPECT_THROW((void)(kRow + Tensor::arange(3)), ConfigError);
}

}  // namespace
}  // namespace infeed
