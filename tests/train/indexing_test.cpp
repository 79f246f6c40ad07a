#include <gtest/gtest.h>

#include "infeed/train/autograd/ops.h"
#include "train/values.h"

namespace infeed {
namespace {

using Values = std::vector<double>;

struct IndexingTest : testing::Test {
  Tensor t = Tensor::arange(24, DType::kFloat32).view({2, 3, 4});
  static Tensor of(std::initializer_list<std::int64_t> values) { return Tensor::from_values(values); }
  static constexpr std::int64_t at(std::int64_t i) { return i; }
};

TEST_F(IndexingTest, TakesNumbersSlicesNoneAndEllipsisAsViews) {
  EXPECT_EQ(values_of(t.index({at(1), at(-1)})), (Values{20, 21, 22, 23}));
  EXPECT_EQ(values_of(t.index({Ellipsis{}, Slice{1, 4, 2}, at(0)}).index({at(1)})), (Values{16}));
  EXPECT_EQ(t.index({NewAxis{}, Slice{}, Slice{-2, {}}}).shape(), (Shape{1, 2, 2, 4}));
  EXPECT_EQ(t.index({at(0)}).data_ptr(), t.data_ptr());
}

TEST_F(IndexingTest, NamesWhatIsOutOfRange) {
  EXPECT_THROW((void)t.index({at(2)}), IndexError);
  EXPECT_THROW((void)t.index({at(0), at(0), at(0), at(0)}), IndexError);
  EXPECT_THROW((void)t.index({Slice{0, 2, -1}}), ValueError);
  EXPECT_THROW((void)t.index({of({0, 2})}), IndexError);
  EXPECT_THROW((void)gather(t, 0, Tensor::full({1, 1, 1}, 5, DType::kInt64)), RuntimeError);
}

TEST_F(IndexingTest, TakesIndexTensorsWherePyTorchPutsThem) {
  EXPECT_EQ(t.index({of({1, 0, 1})}).shape(), (Shape{3, 3, 4}));
  EXPECT_EQ(values_of(t.index({Slice{}, of({0, 2}), of({1, -1})})), (Values{1, 11, 13, 23}));
  EXPECT_EQ(t.index({of({0, 1}), Slice{}, of({1, 2})}).shape(), (Shape{2, 3}));
  EXPECT_EQ(t.index({Slice{}, of({0, 2}).view({2, 1}), of({1, 3})}).shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(values_of(t.index({at(1), of({2, 0}), at(3)})), (Values{23, 15}));
}

TEST_F(IndexingTest, TakesMasks) {
  EXPECT_EQ(values_of(t.index({gt(t, 20)})), (Values{21, 22, 23}));
  EXPECT_EQ(t.index({Slice{}, Tensor::from_values({true, false, true})}).shape(), (Shape{2, 2, 4}));
  EXPECT_EQ(t.index({gt(t, 20), NewAxis{}}).shape(), (Shape{3, 1}));
  EXPECT_EQ(t.index({false}).shape(), (Shape{0, 2, 3, 4}));
  EXPECT_EQ(values_of(nonzero(of({0, 5, 0, 7}))), (Values{1, 3}));
}

TEST_F(IndexingTest, AssignsAndBroadcasts) {
  t.index_put({at(0)}, 0.0);
  t.index_put({at(1), of({0, 2}), Slice{0, 2}}, Tensor::from_values({-1.f, -2.f}));
  t.index_put({gt(t, 16)}, -5);
  EXPECT_EQ(values_of(t.index({at(1)})), (Values{-1, -2, 14, 15, 16, -5, -5, -5, -1, -2, -5, -5}));
  EXPECT_EQ(sum(t.index({at(0)})).item(), 0.0);
}

TEST_F(IndexingTest, SendsGradientsBackToTheirPlaces) {
  const Tensor x = t.clone().set_requires_grad();
  Tensor y = x * 1.0;
  y.index_put({Slice{}, of({0, 0})}, 0.0);
  sum(y.index({at(0), of({1, 1, 0})})).backward();
  EXPECT_EQ(values_of(x.grad().index({at(0)})), (Values{0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0}));
}

TEST_F(IndexingTest, GathersAndScattersAlongADimension) {
  const Tensor index = of({2, 0}).view({1, 2, 1}).expand({2, 2, 1}).contiguous();
  EXPECT_EQ(values_of(gather(t, 1, index)), (Values{8, 0, 20, 12}));
  EXPECT_EQ(values_of(scatter_add(Tensor::zeros({3}), 0, of({1, 1, 2}), Tensor::from_values({1.f, 2.f, 3.f}))),
            (Values{0, 3, 3}));
  EXPECT_EQ(values_of(index_select(t, 2, of({3, 3})).select(0, 0)), (Values{3, 3, 7, 7, 11, 11}));
  EXPECT_EQ(values_of(one_hot(of({1, 0}), 3)), (Values{0, 1, 0, 1, 0, 0}));
}

TEST_F(IndexingTest, SortsStablyWithNanLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = Tensor::from_values({2.f, nan, 1.f, 2.f});
  EXPECT_EQ(values_of(sort(x).indices), (Values{2, 0, 3, 1}));
  EXPECT_EQ(values_of(sort(x, 0, true).indices), (Values{1, 0, 3, 2}));
  EXPECT_EQ(values_of(topk(x.narrow(0, 2, 2), 1, 0, false).values), (Values{1}));
}

}  // namespace
}  // namespace infeed
