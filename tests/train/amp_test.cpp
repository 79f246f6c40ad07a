#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed::amp {
namespace {

Tensor square(DType dtype = DType::kFloat32) { return spread_values({4, 4}).to(dtype); }

struct Case {
  const char* name;
  std::function<Tensor(const Tensor&)> op;
};
const Case kLowered[] = {
    {"matmul", [](const Tensor& x) { return matmul(x, x); }},
    {"mm", [](const Tensor& x) { return mm(x, x); }},
    {"bmm", [](const Tensor& x) { return bmm(x.unsqueeze(0), x.unsqueeze(0)); }},
    {"addmm", [](const Tensor& x) { return addmm(x, x, x); }},
    {"baddbmm", [](const Tensor& x) { return baddbmm(x, x.unsqueeze(0), x.unsqueeze(0)); }},
    {"matmul with a vector", [](const Tensor& x) { return matmul(x, x.select(0, 0)); }},
    {"linear", [](const Tensor& x) { return nn::linear(x, x, x.select(0, 0)); }},
    {"conv1d", [](const Tensor& x) { return nn::conv1d(x.unsqueeze(0), x.unsqueeze(-1)); }},
    {"conv2d",
     [](const Tensor& x) {
       return nn::conv2d(x.view({1, 1, 4, 4}), x.view({1, 1, 4, 4}));
     }},
    {"conv_transpose2d",
     [](const Tensor& x) {
       return nn::conv_transpose2d(x.view({1, 1, 4, 4}), x.view({1, 1, 4, 4}));
     }},
    {"attention", [](const Tensor& x) { return nn::scaled_dot_product_attention(x, x, x, x); }},
};
const Case kLifted[] = {
    {"mse_loss", [](const Tensor& x) { return nn::mse_loss(x, x); }},
    {"l1_loss", [](const Tensor& x) { return nn::l1_loss(x, x); }},
    {"smooth_l1_loss", [](const Tensor& x) { return nn::smooth_l1_loss(x, x); }},
    {"huber_loss", [](const Tensor& x) { return nn::huber_loss(x, x); }},
    {"kl_div", [](const Tensor& x) { return nn::kl_div(x, x); }},
    {"bce with logits", [](const Tensor& x) { return nn::binary_cross_entropy_with_logits(x, x); }},
    {"cross_entropy",
     [](const Tensor& x) { return nn::cross_entropy(x, Tensor::arange(4), {.weight = infeed::abs(x.select(0, 0))}); }},
    {"nll_loss", [](const Tensor& x) { return nn::nll_loss(x, Tensor::arange(4)); }},
    {"prod", [](const Tensor& x) { return prod(x); }},
};

TEST(AutocastTest, LowersTheProductsOfPyTorchsList) {
  for (const DType low : {DType::kBFloat16, DType::kFloat16}) {
    const AutocastMode autocast(low);
    for (const Case& one : kLowered) EXPECT_EQ(one.op(square()).dtype(), low) << one.name;
  }
}

TEST(AutocastTest, LiftsTheLossesOfPyTorchsList) {
  const AutocastMode autocast;
  for (const Case& one : kLifted) EXPECT_EQ(one.op(square(DType::kBFloat16)).dtype(), DType::kFloat32) << one.name;
}

TEST(AutocastTest, LeavesOtherOperationsAndDtypesAlone) {
  const AutocastMode autocast;
  EXPECT_EQ(exp(square()).dtype(), DType::kFloat32);
  EXPECT_EQ(nn::softmax(square(DType::kBFloat16), 1).dtype(), DType::kBFloat16);
  EXPECT_EQ((square() + square(DType::kBFloat16)).dtype(), DType::kFloat32);
  EXPECT_EQ(mm(square(DType::kFloat64), square(DType::kFloat64)).dtype(), DType::kFloat64);
  EXPECT_EQ(mv(square(), square().select(0, 0)).dtype(), DType::kFloat32);
}

TEST(AutocastTest, NestsAndBelongsToItsThread) {
  const AutocastMode outer(DType::kFloat16);
  {
    const AutocastMode off(DType::kBFloat16, false);
    EXPECT_EQ(mm(square(), square()).dtype(), DType::kFloat32);
  }
  EXPECT_EQ(mm(square(), square()).dtype(), DType::kFloat16);
  std::thread([] { EXPECT_FALSE(autocast_state().enabled); }).join();
  EXPECT_THROW(AutocastMode(DType::kFloat32), TypeError);
  EXPECT_TRUE(autocast_state().enabled);
}

TEST(AutocastTest, GivesParametersFloat32GradientsOfAllUses) {
  Tensor w = square().set_requires_grad();
  {
    const AutocastMode autocast;
    sum(mm(square(), w) + mm(square(), w)).backward();
  }
  const Tensor once = matmul(square().t(), Tensor::ones({4, 4}));
  EXPECT_EQ(w.grad().dtype(), DType::kFloat32);
  for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(values_of(w.grad())[i], 2.0 * values_of(once)[i], 0.05);
}

TEST(AutocastTest, ConvertsAWeightOnceUntilItIsWrittenTo) {
  Tensor w = square().set_requires_grad();
  const AutocastMode autocast;
  const auto weight_of = [&] { return mm(square(), w).grad_fn()->next()[1].node.get(); };
  const auto* first = weight_of();
  EXPECT_EQ(weight_of(), first);
  {
    const NoGradGuard no_grad;
    w.zero_();
  }
  EXPECT_NE(weight_of(), first);
  EXPECT_EQ(values_of(mm(square(), w)), std::vector<double>(16, 0.0));
}

TEST(AutocastTest, ForgetsWeightsAtTheOutermostEnd) {
  const std::size_t before = host_in_use();
  {
    Tensor w = Tensor::ones({64, 64}).set_requires_grad();
    const AutocastMode autocast;
    {
      const AutocastMode inner;
      static_cast<void>(mm(w.detach(), w));
    }
    w = {};
    EXPECT_GT(host_in_use(), before);
  }
  EXPECT_EQ(host_in_use(), before);
}

TEST(AutocastTest, KeepsNoGraphlessWeight) {
  Tensor w = square().set_requires_grad();
  const AutocastMode autocast;
  {
    const NoGradGuard no_grad;
    static_cast<void>(mm(square(), w));
  }
  EXPECT_TRUE(mm(square(), w).requires_grad());
}

// ---- GradScaler ----

class GradScalerTest : public ::testing::Test {
 protected:
  void cycle(GradScaler& scaler, double factor = 1.0) {
    sgd.zero_grad();
    scaler.scale(sum(p * factor)).backward();
    scaler.step(sgd);
    scaler.update();
  }
  Tensor p = Tensor::ones({2}).set_requires_grad();
  optim::SGD sgd{{p}, {.lr = 0.25}};
};

TEST_F(GradScalerTest, StepsAsWithoutIt) {
  GradScaler scaler;
  cycle(scaler);
  EXPECT_EQ(values_of(p), std::vector<double>({0.75, 0.75}));
}

TEST_F(GradScalerTest, LeavesOutInfiniteStepsAndFallsAndGrows) {
  GradScaler scaler({.init_scale = 8.0, .growth_interval = 2});
  std::vector<double> scales;
  for (const double factor : {1.0, 1.0, double(INFINITY), 1.0, 1.0}) {
    cycle(scaler, factor);
    scales.push_back(scaler.get_scale());
  }
  EXPECT_EQ(scales, std::vector<double>({8.0, 16.0, 8.0, 8.0, 16.0}));
  EXPECT_EQ(values_of(p), std::vector<double>({0.0, 0.0}));
}

TEST_F(GradScalerTest, UnscalesBeforeClipping) {
  GradScaler scaler;
  scaler.scale(sum(p)).backward();
  scaler.unscale_(sgd);
  EXPECT_EQ(values_of(p.grad()), std::vector<double>({1.0, 1.0}));
  EXPECT_THROW(scaler.unscale_(sgd), RuntimeError);
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_THROW(scaler.step(sgd), RuntimeError);
}

TEST_F(GradScalerTest, RefusesCallsOutOfOrder) {
  GradScaler scaler;
  EXPECT_THROW(scaler.step(sgd), RuntimeError);
  EXPECT_THROW(scaler.update(), RuntimeError);
  static_cast<void>(scaler.scale(sum(p)));
  EXPECT_THROW(scaler.step(sgd), RuntimeError);
  EXPECT_THROW(GradScaler({.growth_factor = 1.0}), ValueError);
}

TEST_F(GradScalerTest, ResumesAndMayBeOff) {
  GradScaler scaler({.init_scale = 8.0, .growth_interval = 2}), other, off({.enabled = false});
  cycle(scaler);
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.state_dict(), scaler.state_dict());
  EXPECT_THROW(other.load_state_dict(State()), RuntimeError);
  cycle(off);
  EXPECT_EQ(off.get_scale(), 1.0);
  EXPECT_EQ(values_of(p), std::vector<double>({0.5, 0.5}));
}

}  // namespace
}  // namespace infeed::amp
