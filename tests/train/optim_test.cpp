#include <gtest/gtest.h>

#include <limits>

#include "infeed/base/error.h"
#include "infeed/train/optim/fused.h"
#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed::optim {
namespace {

Tensor parameter(float value) { return Tensor::from_values({value}).set_requires_grad(); }

// One parameter at 1 with a gradient of 0.5 at every step.
template <class Algorithm, class Options>
std::vector<double> path_of(const Options& options, int steps) {
  Tensor p = parameter(1.0f);
  Algorithm optimizer(std::vector<Tensor>{p}, options);
  std::vector<double> values;
  for (int i = 0; i < steps; ++i) {
    p.set_grad(Tensor::from_values({0.5f}));
    optimizer.step();
    values.push_back(p.item());
  }
  return values;
}
std::vector<double> path(const SGDOptions& options, int steps = 3) { return path_of<SGD>(options, steps); }

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

TEST(AdamTest, StepsByTheLearningRateWhileTheGradientIsConstant) {
  expect_near(path_of<Adam>(AdamOptions{.lr = 0.1}, 3), {0.9, 0.8, 0.7});
  expect_near(path_of<Adam>(AdamOptions{.lr = 0.1, .amsgrad = true, .maximize = true}, 2), {1.1, 1.2});
}

TEST(AdamTest, DecaysTheWeightApartIfDecoupled) {
  expect_near(path_of<Adam>(adamw_options({.lr = 0.1, .weight_decay = 0.1}), 1), {0.89});
}

TEST(AdamTest, KeepsTheDefaultDecayOfAdamWWhereOnlyTheRateIsGiven) {
  expect_near(path_of<Adam>(adamw_options({.lr = 0.1}), 1), {0.899});
}

TEST(AdamTest, KeepsItsStateByParameter) {
  Tensor p = parameter(1.0f);
  Adam adam({p});
  p.set_grad(Tensor::ones({1}));
  adam.step();
  EXPECT_EQ(adam.state(p).step, 1.0);
  EXPECT_FLOAT_EQ(adam.state(p).exp_avg.item<float>(), 0.1f);
  EXPECT_FLOAT_EQ(adam.state(p).exp_avg_sq.item<float>(), 0.001f);
}

TEST(AdamTest, TakesGroupsAndParametersAway) {
  Tensor a = parameter(1.0f);
  Tensor b = parameter(1.0f);
  Adam adam(std::vector<Tensor>{a}, {.lr = 0.1});
  adam.add_param_group({{b}, {.lr = 0.5}});
  adam.param_groups()[0].params.clear();
  for (Tensor* p : {&a, &b}) p->set_grad(Tensor::ones({1}));
  adam.step();
  EXPECT_EQ(a.item(), 1.0);
  EXPECT_NEAR(b.item(), 0.5, 1e-6);
  EXPECT_THROW(adam.add_param_group({{b}, {}}), ConfigError);
}

TEST(AdagradTest, ShrinksItsSteps) { expect_near(path_of<Adagrad>(AdagradOptions{.lr = 0.1}, 2), {0.9, 0.829289}); }

TEST(RMSpropTest, MeasuresByRecentGradients) {
  expect_near(path_of<RMSprop>(RMSpropOptions{.lr = 0.1, .alpha = 0.75}, 1), {0.8});
  expect_near(path_of<RMSprop>(RMSpropOptions{.lr = 0.1, .alpha = 0.75, .momentum = 0.5}, 2), {0.8, 0.5488142});
}

// Pieces, threads, transposed memory and wide dtypes give what single numbers give.
TEST(FusedTest, StepsManyTensorsAlike) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kBFloat16}) {
    Tensor plain = Tensor::full({300, 200}, 1.0, dtype).set_requires_grad();
    Tensor turned = Tensor::full({300, 200}, 1.0, dtype).t().set_requires_grad();
    for (Tensor* p : {&plain, &turned}) p->set_grad(Tensor::full(p->shape(), 0.5, dtype));
    SGD({plain, turned}, {.lr = 0.5}).step();
    EXPECT_TRUE(equal(plain, Tensor::full({300, 200}, 0.75, dtype)));
    EXPECT_TRUE(equal(turned, Tensor::full({200, 300}, 0.75, dtype)));
  }
}

TEST(FusedTest, FindsWhatIsNotFinite) {
  const Tensor fine = Tensor::full({40000}, 4.0);
  const Tensor bad = Tensor::full({3}, std::numeric_limits<float>::infinity());
  EXPECT_TRUE(unscale(std::vector<Tensor>{fine}, 0.5));
  EXPECT_EQ(fine.select(0, 39999).item(), 2.0);
  EXPECT_FALSE(unscale(std::vector<Tensor>{fine, bad}, 0.5));
}

// Parameters with grads (3) and (4), of norm 5, and one without.
std::vector<Tensor> with_grads() {
  std::vector<Tensor> parameters{parameter(1.0f), parameter(1.0f), parameter(1.0f)};
  parameters[0].set_grad(Tensor::from_values({3.0f}));
  parameters[1].set_grad(Tensor::from_values({4.0f}));
  return parameters;
}

TEST(ClipGradTest, ScalesAllGradientsTogetherToTheNorm) {
  const auto parameters = with_grads();
  EXPECT_FLOAT_EQ(nn::clip_grad_norm_(parameters, 1.0).item<float>(), 5.0f);
  expect_near({parameters[0].grad().item(), parameters[1].grad().item()}, {0.6, 0.8});
  EXPECT_FALSE(parameters[2].grad().defined());
}

TEST(ClipGradTest, LeavesSmallGradientsAlone) {
  const auto parameters = with_grads();
  EXPECT_EQ(nn::clip_grad_norm_(parameters, 6.0, std::numeric_limits<double>::infinity()).item(), 4.0);
  EXPECT_EQ(parameters[0].grad().item(), 3.0);
}

TEST(ClipGradTest, RefusesANormThatIsNotFiniteIfAsked) {
  auto parameters = with_grads();
  parameters[0].set_grad(Tensor::from_values({std::numeric_limits<float>::infinity()}));
  EXPECT_THROW(nn::clip_grad_norm_(parameters, 1.0, 2.0, true), RuntimeError);
}

TEST(ClipGradTest, CutsElementsToTheValue) {
  const auto parameters = with_grads();
  nn::clip_grad_value_(parameters, 3.5);
  expect_near({parameters[0].grad().item(), parameters[1].grad().item()}, {3.0, 3.5});
}

}  // namespace
}  // namespace infeed::optim
