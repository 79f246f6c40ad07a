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

TEST(OpsTest, ClampsBetweenNumbers) {
  EXPECT_EQ(values_of(clamp(kRow, 1.5, 2.5)), (std::vector<double>{1.5, 2, 2.5}));
  EXPECT_EQ(values_of(clamp(kRow, std::nullopt, 2.0)), (std::vector<double>{1, 2, 2}));
  EXPECT_EQ(clamp(Tensor::arange(3), 1, 2).dtype(), DType::kInt64);
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

TEST(OpsTest, PromotesIntegersBesideFloats) {
  const Tensor t = Tensor::arange(3);
  EXPECT_EQ((t * t + 1).dtype(), DType::kInt64);
  EXPECT_EQ(values_of(t * t + 1), (std::vector<double>{1, 2, 5}));
  EXPECT_EQ((t * 0.5).dtype(), DType::kFloat32);
  EXPECT_EQ((t / t).dtype(), DType::kFloat32);
  EXPECT_EQ((kRow + t.to(DType::kFloat64).select(0, 1)).dtype(), DType::kFloat32);  // no dimensions: weaker
  EXPECT_EQ((kRow + t.to(DType::kFloat64)).dtype(), DType::kFloat64);
}

TEST(OpsTest, WrapsSmallIntegersAndRefusesDivisionByZero) {
  const Tensor bytes = Tensor::full({2}, 200, DType::kUInt8);
  EXPECT_EQ(values_of(bytes + bytes), (std::vector<double>{144, 144}));
  EXPECT_EQ(values_of(floor_divide(Tensor::from_values({-7, 7}), 2)), (std::vector<double>{-4, 3}));
  EXPECT_EQ(values_of(remainder(Tensor::from_values({-7, 7}), 3)), (std::vector<double>{2, 1}));
  EXPECT_THROW((void)floor_divide(bytes, 0), RuntimeError);
}

TEST(OpsTest, MultipliesMatricesOfAllRanks) {
  const Tensor a = Tensor::arange(6, DType::kFloat32).view({2, 3});
  EXPECT_EQ(values_of(matmul(a, kRow)), (std::vector<double>{8, 26}));
  EXPECT_EQ(matmul(kRow, kRow).item(), 14.0);
  EXPECT_EQ(values_of(matmul(kRow, a.t())), (std::vector<double>{8, 26}));
  EXPECT_EQ(matmul(Tensor::ones({4, 2, 3}), Tensor::ones({3, 5})).shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(matmul(Tensor::ones({4, 1, 2, 3}), Tensor::ones({6, 3, 5})).shape(), (Shape{4, 6, 2, 5}));
}

TEST(OpsTest, NamesSizesAndDimensionOnMismatch) {
  try {
    (void)(kRow + Tensor::zeros({2, 4}));
    FAIL() << "no error";
  } catch (const RuntimeError& error) {
    EXPECT_STREQ(error.what(),
                 "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
  }
  EXPECT_THROW((void)matmul(kRow, Tensor::zeros({2, 4})), RuntimeError);
}

TEST(OpsTest, KnowsShapesWithoutMemory) {
  const Tensor none = Tensor::empty({2, 3}, kMetaDevice);
  EXPECT_EQ((exp(none) + 1.0).shape(), (Shape{2, 3}));
  EXPECT_EQ(matmul(none, none.t()).shape(), (Shape{2, 2}));
  EXPECT_EQ((Tensor::full({}, 2.0) * none).device(), kMetaDevice);
  EXPECT_THROW((void)(none + kRow), RuntimeError);
  EXPECT_THROW((void)none.select(0, 0).select(0, 0).item(), RuntimeError);
}

TEST(OpsTest, TakesNumbersBesideManyElements) {
  const Tensor x = Tensor::arange(100'003).to(DType::kFloat32);  // more than a block, on several threads
  const Tensor one = Tensor::from_values({1.0}, {});             // float64, without dimensions
  const Tensor y = x * 2 + one;
  const Tensor z = 3.0 - x.view({-1, 1}).expand({-1, 2});
  for (const std::int64_t i : {0L, 511L, 512L, 65'537L, 100'002L}) {
    EXPECT_EQ(y.select(0, i).item(), 2.0 * static_cast<double>(i) + 1.0);
    EXPECT_EQ(z.select(0, i).select(0, 1).item(), 3.0 - static_cast<double>(i));
  }
}

// Largest distance of f of floats from f of doubles, in units of the last place.
double ulps_of(Tensor (*f)(const Tensor&), const Tensor& x) {
  const std::vector<double> ours = values_of(f(x));
  const std::vector<double> exact = values_of(f(x.to(DType::kFloat64)));
  double worst = 0.0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const float size = std::max(std::fabs(static_cast<float>(exact[i])), std::numeric_limits<float>::min());
    const double ulp = static_cast<double>(std::nextafter(size, INFINITY) - size);
    if (std::isfinite(ulp)) worst = std::max(worst, std::fabs(ours[i] - exact[i]) / ulp);
  }
  return worst;
}

TEST(OpsTest, ComputesFunctionsOfFloatsWithinFourUnitsOfTheLastPlace) {
  const Tensor x = Tensor::arange(200001, DType::kFloat32) * 0.0008705 - 85.0;
  for (const auto f : {exp, tanh, erf, sigmoid, silu}) EXPECT_LT(ulps_of(f, x), 4.0);
  EXPECT_LT(ulps_of(log, exp(x)), 4.0);
}

TEST(OpsTest, KeepsInfinityAndNan) {
  const Tensor edges = Tensor::from_values({-INFINITY, INFINITY, 0.0f});
  EXPECT_EQ(values_of(exp(edges)), (std::vector<double>{0, INFINITY, 1}));
  EXPECT_EQ(values_of(tanh(edges)), (std::vector<double>{-1, 1, 0}));
  EXPECT_EQ(values_of(sigmoid(edges)), (std::vector<double>{0, 1, 0.5}));
  EXPECT_EQ(values_of(log(exp(edges))), (std::vector<double>{-INFINITY, INFINITY, 0}));
  const Tensor nan = Tensor::from_values({NAN});
  for (const auto f : {exp, log, tanh, erf, sigmoid, silu}) EXPECT_TRUE(std::isnan(f(nan).item()));
}

}  // namespace
}  // namespace infeed
