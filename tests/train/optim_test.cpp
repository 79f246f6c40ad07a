#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed::optim {
namespace {

Tensor parameter(float value) { return Tensor::from_values({value}).set_requires_grad(); }

// One parameter at 1 with a gradient of 0.5 at every step.
std::vector<double> path(const SGDOptions& options, int steps = 3) {
  Tensor p = parameter(1.0f);
  SGD sgd({p}, options);
  std::vector<double> values;
  for (int i = 0; i < steps; ++i) {
    p.set_grad(Tensor::from_values({0.5f}));
    sgd.step();
    values.push_back(p.item());
  }
  return values;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-6) << "step " << i;
}

TEST(SGDTest, StepsAgainstTheGradient) {
  expect_near(path({.lr = 0.1}), {0.95, 0.90, 0.85});
  expect_near(path({.lr = 0.1, .maximize = true}), {1.05, 1.10, 1.15});
}

TEST(SGDTest, GathersMomentum) {
  expect_near(path({.lr = 0.1, .momentum = 0.9}), {0.95, 0.855, 0.7195});
  expect_near(path({.lr = 0.1, .momentum = 0.9, .nesterov = true}, 2), {0.905, 0.7695});
  expect_near(path({.lr = 0.1, .momentum = 0.9, .dampening = 0.5}, 2), {0.95, 0.88});
}

TEST(SGDTest, DecaysWeights) { expect_near(path({.lr = 0.1, .weight_decay = 0.1}, 2), {0.94, 0.8806}); }

TEST(SGDTest, LeavesParametersWithoutGradAlone) {
  Tensor p = parameter(1.0f);
  SGD({p}, {.lr = 1.0}).step();
  EXPECT_EQ(p.item(), 1.0);
}

TEST(SGDTest, ObeysTheOptionsOfEachGroup) {
  Tensor a = parameter(1.0f);
  Tensor b = parameter(1.0f);
  SGD sgd({{{a}, {.lr = 0.1}}, {{b}, {.lr = 0.2}}});
  sgd.param_groups()[1].options.lr = 0.4;
  for (Tensor* p : {&a, &b}) p->set_grad(Tensor::ones({1}));
  sgd.step();
  EXPECT_FLOAT_EQ(a.item<float>(), 0.9f);
  EXPECT_FLOAT_EQ(b.item<float>(), 0.6f);
}

TEST(SGDTest, DropsOrClearsGrads) {
  Tensor p = parameter(1.0f);
  SGD sgd({p});
  p.set_grad(Tensor::ones({1}));
  sgd.zero_grad(false);
  EXPECT_EQ(p.grad().item(), 0.0);
  sgd.zero_grad();
  EXPECT_FALSE(p.grad().defined());
}

TEST(SGDTest, MarksParametersAsModified) {
  Tensor p = parameter(1.0f);
  const Tensor loss = sum(p * p);
  p.set_grad(Tensor::ones({1}));
  SGD({p}).step();
  EXPECT_THROW(loss.backward(), RuntimeError);
}

TEST(SGDTest, RefusesBadOptions) {
  EXPECT_THROW(SGD({parameter(1.0f)}, {.lr = -1.0}), ConfigError);
  EXPECT_THROW(SGD({parameter(1.0f)}, {.nesterov = true}), ConfigError);
  EXPECT_THROW(SGD(std::vector<Tensor>{}), ConfigError);
  EXPECT_THROW(SGD({Tensor::zeros({1})}), ConfigError);
}

}  // namespace
}  // namespace infeed::optim
