#include "infeed/train/tensor/tensor.h"

#include <gtest/gtest.h>

#include <numeric>

#include "infeed/base/error.h"
#include "infeed/train/autograd/ops.h"
#include "infeed/train/tensor/random.h"
#include "train/values.h"

namespace infeed {
namespace {

TEST(TensorTest, HoldsTheValuesItIsMadeOf) {
  const Tensor t = Tensor::from_values({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  EXPECT_EQ(t.select(0, 1).select(0, 0).item<float>(), 3.0f);
  EXPECT_EQ(values_of(Tensor::arange(3)), (std::vector<double>{0, 1, 2}));
  EXPECT_EQ(values_of(Tensor::full({2}, 7.5)), (std::vector<double>{7.5, 7.5}));
}

TEST(TensorTest, RefusesUseOfAnUndefinedOne) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_THROW((void)Tensor().shape(), RuntimeError);
}

TEST(TensorTest, SharesTheMemoryOfAnArrayAndKeepsItsOwner) {
  auto owner = std::make_shared<std::vector<float>>(6, 1.0f);
  const std::weak_ptr<std::vector<float>> watch = owner;
  Tensor row;
  {
    const Tensor t = Tensor::from_array(ArrayView(owner->data(), DType::kFloat32, {2, 3}), owner);
    EXPECT_EQ(t.data<float>(), owner->data());
    row = t.select(0, 1);
  }
  owner.reset();
  EXPECT_EQ(row.data<float>(), watch.lock()->data() + 3);
  row = Tensor();
  EXPECT_TRUE(watch.expired());
}

TEST(TensorTest, ViewsShareStorageAndVersion) {
  Tensor t = Tensor::zeros({2, 3});
  t.select(1, 2).fill_(5.0);
  EXPECT_EQ(values_of(t), (std::vector<double>{0, 0, 5, 0, 0, 5}));
  EXPECT_EQ(t.version(), 1U);
}

TEST(TensorTest, TransposesAndNarrowsWithoutACopy) {
  const Tensor t = Tensor::arange(6).view({2, 3});
  EXPECT_EQ(values_of(t.t()), (std::vector<double>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of(t.narrow(1, 1, 2)), (std::vector<double>{1, 2, 4, 5}));
  EXPECT_EQ(t.t().data_ptr(), t.data_ptr());
}

TEST(TensorTest, ReshapesByViewWherePossible) {
  const Tensor t = Tensor::arange(24).view({2, 3, 4});
  EXPECT_EQ(t.reshape({6, -1}).data_ptr(), t.data_ptr());
  EXPECT_NE(t.transpose(0, 2).reshape({24}).data_ptr(), t.data_ptr());
  EXPECT_EQ(t.transpose(1, 2).reshape({2, 12}).shape(), (Shape{2, 12}));
}

TEST(TensorTest, RefusesAViewThatNeedsACopy) {
  const Tensor t = Tensor::arange(6).view({2, 3}).t();
  EXPECT_THROW((void)t.view({6}), RuntimeError);
  EXPECT_THROW((void)t.reshape({4}), RuntimeError);
  EXPECT_THROW((void)t.reshape({-1, -1}), RuntimeError);
}

TEST(TensorTest, FlattensGloballyPooledChannelsLastWithoutACopy) {
  const Tensor pooled = Tensor::empty({2, 8, 1, 1}, DType::kFloat32, MemoryFormat::kChannelsLast);
  EXPECT_EQ(pooled.flatten(1).data_ptr(), pooled.data_ptr());
  EXPECT_EQ(pooled.flatten(1).shape(), (Shape{2, 8}));
}

TEST(TensorTest, KeepsLogicalOrderInChannelsLast) {
  const Tensor t = Tensor::arange(2 * 3 * 4 * 5, DType::kFloat32).view({2, 3, 4, 5});
  const Tensor nhwc = t.contiguous(MemoryFormat::kChannelsLast);
  EXPECT_TRUE(nhwc.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(nhwc.strides(), (Strides{60, 1, 15, 3}));
  EXPECT_EQ(values_of(nhwc), values_of(t));
}

TEST(TensorTest, ReordersLargeImagesExactly) {
  const Tensor t = Tensor::randn({4, 16, 17, 19});
  const Tensor nhwc = t.contiguous(MemoryFormat::kChannelsLast);
  EXPECT_EQ(values_of(nhwc.contiguous()), values_of(t));
}

TEST(TensorTest, ConvertsBetweenAllDtypes) {
  const Tensor t = Tensor::from_values({0.0f, 1.0f, 100.0f});
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const double last = dtype == DType::kBool ? 1.0 : 100.0;
    EXPECT_EQ(values_of(t.to(dtype)), (std::vector<double>{0, 1, last})) << to_string(dtype);
    EXPECT_EQ(values_of(t.to(dtype).to(DType::kInt64)), (std::vector<double>{0, 1, last})) << to_string(dtype);
  }
}

TEST(TensorTest, ConvertsLargeIntegersExactly) {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  const Tensor t = Tensor::from_values({large, -large}).to(DType::kUInt64).to(DType::kInt64);
  EXPECT_EQ(t.data<std::int64_t>()[0], large);
  EXPECT_EQ(t.data<std::int64_t>()[1], -large);
}

TEST(TensorTest, MakesFloatImagesOfHwcBytes) {
  std::vector<std::uint8_t> pixels(2 * 4 * 5 * 3);
  std::iota(pixels.begin(), pixels.end(), std::uint8_t{0});
  const ArrayView array(pixels.data(), DType::kUInt8, {2, 4, 5, 3});
  const Tensor image = Tensor::from_array(array, nullptr).permute({0, 3, 1, 2}).to(DType::kFloat32) / 255.0;
  EXPECT_TRUE(image.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_FLOAT_EQ(image.select(0, 0).select(0, 1).select(0, 0).select(0, 2).item<float>(), 7.0f / 255.0f);
}

TEST(TensorTest, ExpandsByRepeating) {
  const Tensor t = Tensor::from_values({1.0f, 2.0f}, {2, 1});
  EXPECT_EQ(values_of(t.expand({2, 3})), (std::vector<double>{1, 1, 1, 2, 2, 2}));
  EXPECT_THROW((void)t.expand({3, 3}), RuntimeError);
}

TEST(TensorTest, CopiesInPlaceWithBroadcastAndConversion) {
  Tensor t = Tensor::zeros({2, 2});
  t.copy_(Tensor::from_values({3, 4}));
  EXPECT_EQ(values_of(t), (std::vector<double>{3, 4, 3, 4}));
  t.copy_(t.t());  // overlapping: read before it is written
  EXPECT_EQ(values_of(t), (std::vector<double>{3, 3, 4, 4}));
}

TEST(TensorTest, NamesDimensionAndShapeOfABadIndex) {
  const Tensor t = Tensor::zeros({2, 3});
  EXPECT_THROW((void)t.select(2, 0), IndexError);
  EXPECT_THROW((void)t.select(1, 3), IndexError);
  EXPECT_THROW((void)t.narrow(1, 2, 2), RuntimeError);
  EXPECT_THROW((void)t.permute({0, 0}), RuntimeError);
  EXPECT_THROW((void)t.item(), RuntimeError);
}

TEST(TensorTest, PrintsAsPyTorchDoes) {
  EXPECT_EQ(Tensor::arange(3).str(), "tensor([0, 1, 2])");
  EXPECT_EQ(Tensor::from_values({1.5f, 2.0f}, {2, 1}).str(), "tensor([[1.5000],\n        [2.0000]])");
  EXPECT_EQ(Tensor::from_values({1.0f, -20.0f}).set_requires_grad().str(), "tensor([  1., -20.], requires_grad=True)");
  EXPECT_EQ(Tensor::arange(1001).str(), "tensor([   0,    1,    2,  ...,  998,  999, 1000])");
  EXPECT_EQ(Tensor::from_values({1e-6, 1.0}).str(), "tensor([1.0000e-06, 1.0000e+00], dtype=torch.float64)");
  EXPECT_EQ(Tensor::empty({2, 3}, kMetaDevice).str(), "tensor(..., device='meta', size=(2, 3))");
}

TEST(TensorTest, DrawsTheSameNumbersForTheSameSeed) {
  Generator generator(7);
  const Tensor a = Tensor::randn({1000}, generator);
  const Tensor b = Tensor::randn({1000}, generator);
  generator.manual_seed(7);
  EXPECT_EQ(values_of(Tensor::randn({1000}, generator)), values_of(a));
  EXPECT_NE(values_of(a), values_of(b));
  EXPECT_NEAR(mean(a).item(), 0.0, 0.15);
  EXPECT_NEAR(mean(a * a).item(), 1.0, 0.2);
}

TEST(TensorTest, WorksWithoutElements) {
  const Tensor none = Tensor::zeros({0, 3});
  EXPECT_EQ(sum(none).item(), 0.0);
  EXPECT_EQ((none + none).shape(), (Shape{0, 3}));
  EXPECT_EQ(values_of(matmul(Tensor::zeros({2, 0}), Tensor::zeros({0, 2}))), (std::vector<double>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace infeed
