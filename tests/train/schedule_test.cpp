#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "infeed/base/error.h"
#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed::optim {
namespace {

using Steps = std::function<void(double metric)>;

// What torch computed: schedules.py.
const nlohmann::json& figures() {
  static const nlohmann::json read = nlohmann::json::parse(std::ifstream(INFEED_SCHEDULES));
  return read;
}

class ScheduleTest : public ::testing::Test {
 protected:
  double& lr() { return sgd.param_groups()[0].options.lr; }

  void expect_path(const std::string& name, const Steps& step) {
    const nlohmann::json& path = figures().at(name);
    for (std::size_t i = 0; i < path.at("lr").size(); ++i) {
      EXPECT_NEAR(lr(), path.at("lr")[i].get<double>(), 1e-12) << name << ", epoch " << i;
      EXPECT_NEAR(sgd.param_groups()[0].options.momentum, path.at("momentum")[i].get<double>(), 1e-12) << name;
      step(figures().at("metrics")[i].get<double>());
    }
  }
  void expect_schedule(const std::string& name, const Schedule& rate, const Schedule& momentum = {}) {
    LRScheduler scheduler(sgd, rate, momentum);
    expect_path(name, [&](double) { scheduler.step(); });
  }

  Tensor parameter = Tensor::ones({1}).set_requires_grad();
  SGD sgd{{parameter}, {.lr = 0.2, .momentum = 0.9}};
};

constexpr OneCycleOptions kCycle{.max_lr = 0.5, .total_steps = 25};

TEST_F(ScheduleTest, ConstantIsTorchs) { expect_schedule("constant", constant_lr(0.25, 3)); }
TEST_F(ScheduleTest, LinearIsTorchs) { expect_schedule("linear", linear_lr(0.1, 1.0, 7)); }
TEST_F(ScheduleTest, StepIsTorchs) { expect_schedule("step", step_lr(5, 0.3)); }
TEST_F(ScheduleTest, MultiStepIsTorchs) { expect_schedule("multi_step", multi_step_lr({9, 2, 9}, 0.5)); }
TEST_F(ScheduleTest, ExponentialIsTorchs) { expect_schedule("exponential", exponential_lr(0.9)); }
TEST_F(ScheduleTest, CosineIsTorchs) { expect_schedule("cosine", cosine_annealing_lr(7, 0.01)); }
TEST_F(ScheduleTest, FunctionsAreTorchsLambda) {
  expect_schedule("lambda", [](double base, std::int64_t epoch) { return base / (1.0 + static_cast<double>(epoch)); });
}
TEST_F(ScheduleTest, SequentialIsTorchs) {
  expect_schedule("sequential",
                  sequential_lr({linear_lr(0.1, 1.0, 4), cosine_annealing_lr(10), exponential_lr(0.9)}, {4, 14}));
}
TEST_F(ScheduleTest, OneCycleIsTorchs) {
  expect_schedule("one_cycle", one_cycle_lr(kCycle), one_cycle_momentum(kCycle));
}
TEST_F(ScheduleTest, OneCycleOfThreeLinesIsTorchs) {
  OneCycleOptions options = kCycle;
  options.cosine = false;
  options.three_phase = true;
  expect_schedule("one_cycle_linear", one_cycle_lr(options), one_cycle_momentum(options));
}
TEST_F(ScheduleTest, PlateauIsTorchs) {
  ReduceLROnPlateau plateau(sgd, {.factor = 0.5, .patience = 2, .cooldown = 1});
  expect_path("plateau", [&](double metric) { plateau.step(metric); });
}
TEST_F(ScheduleTest, PlateauOfAbsoluteRisesIsTorchs) {
  ReduceLROnPlateau plateau(
      sgd, {.maximize = true, .factor = 0.5, .patience = 1, .threshold = 0.5, .relative = false, .min_lr = 0.03});
  expect_path("plateau_absolute", [&](double metric) { plateau.step(metric); });
}

TEST_F(ScheduleTest, ResumesWhereItStood) {
  LRScheduler scheduler(sgd, cosine_annealing_lr(7));
  for (int i = 0; i < 3; ++i) scheduler.step();
  const State saved = State::from_json(scheduler.state_dict().to_json());
  SGD other({parameter}, {.lr = 9.0});
  LRScheduler again(other, cosine_annealing_lr(7));
  again.load_state_dict(saved);
  EXPECT_EQ(again.get_last_lr(), scheduler.get_last_lr());
  EXPECT_EQ(again.last_epoch(), 3);
}

TEST_F(ScheduleTest, PlateauResumesWhereItStood) {
  ReduceLROnPlateau one(sgd, {.factor = 0.5, .patience = 1});
  ReduceLROnPlateau two(sgd, {.factor = 0.5, .patience = 1});
  two.load_state_dict(one.state_dict());
  for (int i = 0; i < 2; ++i) one.step(1.0);
  two.load_state_dict(one.state_dict());
  two.step(1.0);
  EXPECT_DOUBLE_EQ(lr(), 0.1);
}

TEST_F(ScheduleTest, RefusesOptionsOutOfRange) {
  EXPECT_THROW(static_cast<void>(linear_lr(0.0)), ConfigError);
  EXPECT_THROW(static_cast<void>(step_lr(0)), ConfigError);
  EXPECT_THROW(static_cast<void>(sequential_lr({step_lr(1)}, {3})), ConfigError);
  EXPECT_THROW(static_cast<void>(one_cycle_lr({})), ConfigError);
  EXPECT_THROW(ReduceLROnPlateau(sgd, {.factor = 1.0}), ConfigError);
  LRScheduler scheduler(sgd, one_cycle_lr({.max_lr = 1.0, .total_steps = 1}));
  scheduler.step();
  EXPECT_THROW(scheduler.step(), ValueError);
}

// ---- States of optimizers ----

template <class Algorithm>
class OptimizerStateTest : public ::testing::Test {
 protected:
  using Options = std::decay_t<decltype(std::declval<Algorithm&>().param_groups()[0].options)>;
  static Options options() {
    Options o;
    o.lr = 0.1;
    if constexpr (requires { o.momentum; }) o.momentum = 0.9;
    if constexpr (requires { o.amsgrad; }) o.amsgrad = true;
    if constexpr (requires { o.centered; }) o.centered = true;
    return o;
  }
  static std::vector<Tensor> parameters() {
    return {Tensor::ones({2, 3}).set_requires_grad(), Tensor::ones({4}).set_requires_grad()};
  }
  static void step(Algorithm& optimizer, const std::vector<Tensor>& params, int i) {
    for (Tensor p : params) p.set_grad(spread_values(p.shape(), i));
    optimizer.step();
  }
};
using Algorithms = ::testing::Types<SGD, Adam, RMSprop, Adagrad>;
TYPED_TEST_SUITE(OptimizerStateTest, Algorithms);

TYPED_TEST(OptimizerStateTest, ResumesBitForBit) {
  const auto one = this->parameters(), two = this->parameters();
  TypeParam first(one, this->options()), second(two);
  for (int i = 0; i < 3; ++i) this->step(first, one, i);
  for (std::size_t i = 0; i < one.size(); ++i) Tensor(two[i]).detach().copy_(one[i].detach());
  StateDict saved = first.state_dict();
  saved.state = State::from_json(saved.state.to_json());
  second.load_state_dict(saved);
  this->step(first, one, 3);
  this->step(second, two, 3);
  for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(values_of(one[i]), values_of(two[i]));
}

TYPED_TEST(OptimizerStateTest, RefusesAnotherModelsAndStaysAsItWas) {
  const auto params = this->parameters();
  TypeParam optimizer(params, this->options()), other({params[0]}), turned({params[1], params[0]});
  this->step(optimizer, params, 0);
  EXPECT_THROW(other.load_state_dict(optimizer.state_dict()), StateError);
  EXPECT_THROW(turned.load_state_dict(optimizer.state_dict()), StateError);
  EXPECT_THROW(turned.load_state_dict(StateDict()), StateError);
  EXPECT_TRUE(turned.state_dict().tensors.empty());
}

// ---- EMA ----

TEST(EMATest, CopiesOnceAndAveragesThen) {
  Tensor value = Tensor::full({3}, 1.0), count = Tensor::full({}, 5, DType::kInt64);
  EMA ema({{"value", value}, {"count", count}}, 0.9);
  ema.update();
  value.fill_(2.0);
  count.fill_(6);
  ema.update();
  EXPECT_NEAR(ema.averages()[0].tensor.index({0}).item(), 1.1, 1e-6);
  EXPECT_EQ(ema.averages()[1].tensor.item<std::int64_t>(), 6);
}

TEST(EMATest, SwapsForAValidationAndResumes) {
  Tensor value = Tensor::full({2}, 1.0);
  EMA ema({{"value", value}}, 0.5);
  ema.update();
  value.fill_(3.0);
  ema.update();
  ema.swap();
  EXPECT_EQ(values_of(value), std::vector<double>({2.0, 2.0}));
  ema.swap();
  EMA again({{"value", Tensor::zeros({2})}});
  again.load_state_dict(ema.state_dict());
  EXPECT_EQ(values_of(again.averages()[0].tensor), std::vector<double>({2.0, 2.0}));
  EXPECT_EQ(again.num_updates(), 2);
  EXPECT_THROW(again.load_state_dict(StateDict()), StateError);
}

}  // namespace
}  // namespace infeed::optim
