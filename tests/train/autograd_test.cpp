#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/autograd/ops.h"
#include "train/values.h"

namespace infeed {
namespace {

std::string message_of(auto&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct AutogradTest : testing::Test {
  Tensor x = Tensor::from_values({1.0f, 2.0f, 3.0f}).set_requires_grad();
};

TEST_F(AutogradTest, ReachesEveryLeaf) {
  const Tensor w = Tensor::full({3}, 2.0).set_requires_grad();
  sum(x * w).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 2, 2}));
  EXPECT_EQ(values_of(w.grad()), (std::vector<double>{1, 2, 3}));
}

TEST_F(AutogradTest, AddsUpWhereATensorIsUsedTwice) {
  sum(x * x + x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{3, 5, 7}));
}

TEST_F(AutogradTest, AddsToTheGradOfEarlierCalls) {
  sum(x).backward();
  sum(x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 2, 2}));
}

TEST_F(AutogradTest, VisitsADiamondInOrder) {
  const Tensor a = x * 2.0;
  const Tensor b = a * a;
  sum(b * a).backward();  // (2x)^3 -> 24 x^2
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{24, 96, 216}));
}

TEST_F(AutogradTest, DoesNotMixTheGradsOfTwoLeaves) {
  const Tensor y = Tensor::zeros({3}).set_requires_grad();
  sum(x + y).backward();
  NoGradGuard no_grad;
  Tensor grad = x.grad();
  grad.fill_(9.0);
  EXPECT_EQ(values_of(y.grad()), (std::vector<double>{1, 1, 1}));
}

TEST_F(AutogradTest, RefusesANonScalar) {
  EXPECT_NE(message_of([&] { (x * 2.0).backward(); }).find("shape [3] has 3 elements"), std::string::npos);
  (x * 2.0).backward(Tensor::from_values({1.0f, 0.0f, 2.0f}));
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 0, 4}));
}

TEST_F(AutogradTest, RefusesATensorOutsideTheGraph) {
  EXPECT_THROW(Tensor::zeros({}).backward(), ConfigError);
  EXPECT_THROW(sum(x.detach()).backward(), ConfigError);
}

TEST_F(AutogradTest, RefusesASecondPassUnlessToldToRetain) {
  const Tensor loss = sum(x * x);
  loss.backward({.retain_graph = true});
  loss.backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{4, 8, 12}));
  EXPECT_NE(message_of([&] { loss.backward(); }).find("retain_graph"), std::string::npos);
}

TEST_F(AutogradTest, NoticesASavedTensorThatWasModified) {
  const Tensor loss = sum(x * x);
  {
    NoGradGuard no_grad;
    x.add_(x);
  }
  EXPECT_NE(message_of([&] { loss.backward(); }).find("modified in place"), std::string::npos);
}

TEST_F(AutogradTest, NoticesAModificationThroughAView) {
  Tensor constant = Tensor::ones({2, 3});
  const Tensor loss = sum(x * constant);
  constant.select(0, 1).fill_(3.0);
  EXPECT_THROW(loss.backward(), ConfigError);
}

TEST_F(AutogradTest, RefusesInPlaceOnRecordedTensors) {
  EXPECT_THROW(x.add_(x), ConfigError);
  EXPECT_THROW((x * 2.0).mul_(2.0), ConfigError);
  Tensor plain = Tensor::zeros({3});
  EXPECT_THROW(plain.copy_(x), ConfigError);
}

TEST_F(AutogradTest, RecordsNothingUnderNoGrad) {
  const NoGradGuard no_grad;
  const Tensor y = x * 2.0;
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.grad_fn(), nullptr);
}

TEST_F(AutogradTest, SendsNothingToInputsThatNeedNone) {
  const Tensor constant = Tensor::ones({3});
  sum(x * constant).backward();
  EXPECT_FALSE(constant.grad().defined());
}

TEST_F(AutogradTest, FollowsViews) {
  sum(x.view({3, 1}).expand({3, 2}).t().select(0, 1) * x).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{2, 4, 6}));
}

TEST_F(AutogradTest, FreesLongChainsWithoutRecursion) {
  Tensor y = x;
  for (int i = 0; i < 200'000; ++i) y = affine(y, 1.0, 0.0);
  sum(y).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{1, 1, 1}));
}

TEST_F(AutogradTest, LeavesNothingBehind) {
  const auto before = host_in_use();
  for (int i = 0; i < 2; ++i) {
    sum(relu(exp(x) * x)).backward();
    x.set_grad({});
  }
  EXPECT_EQ(host_in_use(), before);
}

TEST_F(AutogradTest, KeepsGradientsInTheDtypeOfTheirLeaf) {
  const Tensor wide = Tensor::full({3}, 2.0, DType::kFloat64).set_requires_grad();
  sum(wide.to(DType::kFloat32) * x).backward();
  EXPECT_EQ(wide.grad().dtype(), DType::kFloat64);
  EXPECT_THROW(Tensor::arange(3).set_requires_grad(), ConfigError);
}

}  // namespace
}  // namespace infeed
