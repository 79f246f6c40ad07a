#include "train/device_list.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <vector>

#include "infeed/train/train.h"
#include "train/device_operations.h"
#include "train/values.h"

namespace infeed {
namespace {

void expect_close(const Tensor& got, const Tensor& expected, const std::string& what, double tolerance = 1e-5) {
  ASSERT_EQ(got.shape(), expected.shape()) << what;
  const std::vector<double> a = values_of(got.cpu()), b = values_of(expected);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i])) {
      ASSERT_TRUE(std::isnan(a[i])) << what << ", element " << i;
      continue;
    }
    ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::fabs(b[i]))) << what << ", element " << i;
  }
}

// ---- Operations ----

/// The sum of the result, each element weighted, differentiated.
std::vector<Tensor> with_gradients(const Operation& operation, DeviceId where) {
  Inputs inputs;
  for (const Tensor& x : operation.inputs) {
    inputs.push_back(x.detach().to(where, true));
    if (is_floating_point(x.dtype())) inputs.back().set_requires_grad();
  }
  const Tensor y = operation.run(inputs);
  std::vector<Tensor> results{y.detach()};
  if (!y.requires_grad()) return results;
  y.backward(spread_values(y.shape(), 5).to(where));
  for (const Tensor& x : inputs)
    if (is_floating_point(x.dtype())) results.push_back(x.grad());
  return results;
}

void expect_the_cpus(const std::vector<Operation>& operations, DeviceId id) {
  for (const Operation& operation : operations) {
    SCOPED_TRACE(operation.name);
    const auto expected = with_gradients(operation, {}), got = with_gradients(operation, id);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].device(), id);
      expect_close(got[i], expected[i], operation.name + (i == 0 ? "" : ", gradient"));
    }
  }
}

TEST_F(DeviceTensorTest, ElementsAreTheCpusForwardAndBackward) { expect_the_cpus(elementwise_operations(), id); }
TEST_F(DeviceTensorTest, ShapesAreTheCpusForwardAndBackward) { expect_the_cpus(shaped_operations(), id); }
TEST_F(DeviceTensorTest, LayersAreTheCpusForwardAndBackward) { expect_the_cpus(layer_operations(), id); }

// ---- What a device does not compute ----

// A read by the host would end the process: the device's addresses are none of the host's.
TEST_F(DeviceTensorTest, WhateverElseEitherGivesTheCpusValuesOrRefusesByName) {
  for (const Operation& operation : other_operations()) {
    SCOPED_TRACE(operation.name);
    try {
      expect_close(with_gradients(operation, id).front(), operation.run(operation.inputs), operation.name);
    } catch (const NotImplementedError& error) {
      EXPECT_THAT(error.what(), ::testing::AllOf(::testing::HasSubstr(name()), ::testing::HasSubstr(".cpu()")));
    }
  }
}

TEST_F(DeviceTensorTest, ARefusalNamesTheOperationTheDeviceAndTheWayOut) {
  const Tensor x = there(spread_values({4, 6}));
  const auto refused = [&](const char* operation, const std::function<void()>& call) {
    EXPECT_THAT(call,
                ::testing::ThrowsMessage<NotImplementedError>(::testing::AllOf(
                    ::testing::HasSubstr(operation), ::testing::HasSubstr(name()), ::testing::HasSubstr(".cpu()"))));
  };
  refused("sort", [&] { static_cast<void>(sort(x)); });
  refused("remainder", [&] { static_cast<void>(remainder(x, 0.3)); });
  refused("float16", [&] { static_cast<void>(x.to(DType::kFloat16)); });
  refused("this operation", [&] { static_cast<void>(x.data<float>()); });
}

TEST_F(DeviceTensorTest, TensorsOfTwoDevicesDoNotMeet) {
  const Tensor here = spread_values({3, 3}), x = there(here);
  const auto names_both = ::testing::AllOf(::testing::HasSubstr(name()), ::testing::HasSubstr("cpu"));
  EXPECT_THAT([&] { static_cast<void>(x + here); }, ::testing::ThrowsMessage<RuntimeError>(names_both));
  EXPECT_THAT([&] { static_cast<void>(matmul(x, here)); }, ::testing::ThrowsMessage<RuntimeError>(names_both));
  EXPECT_THAT([&] { static_cast<void>(matmul(here, x)); }, ::testing::ThrowsMessage<RuntimeError>(names_both));
  EXPECT_THAT([&] { static_cast<void>(nn::linear(x, here)); }, ::testing::ThrowsMessage<RuntimeError>(names_both));
}

// ---- Moving ----

TEST_F(DeviceTensorTest, ValuesComeBackAsTheyWent) {
  for (const DType dtype : {DType::kBool, DType::kUInt8, DType::kInt32, DType::kInt64, DType::kFloat16,
                            DType::kBFloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor x = (spread_values({3, 4, 5}) * 100.0).to(dtype);
    EXPECT_TRUE(equal(there(x).cpu(), x)) << to_string(dtype);
    EXPECT_TRUE(equal(there(x.permute({2, 0, 1}).slice(0, {0, 4, 2})).cpu(), x.permute({2, 0, 1}).slice(0, {0, 4, 2})));
  }
}

TEST_F(DeviceTensorTest, DtypesConvertThere) {
  const Tensor x = spread_values({4, 5}) * 100.0;
  for (const DType dtype : {DType::kBool, DType::kUInt8, DType::kInt8, DType::kInt64, DType::kFloat64}) {
    const Tensor expected = abs(x).to(dtype);
    EXPECT_TRUE(equal(there(abs(x)).to(dtype).cpu(), expected)) << to_string(dtype);
    EXPECT_TRUE(equal(there(expected).to(DType::kFloat32).cpu(), expected.to(DType::kFloat32))) << to_string(dtype);
  }
}

TEST_F(DeviceTensorTest, CopiesGoBothWaysThroughViewsAndBroadcast) {
  const Tensor row = spread_values({5});
  Tensor x = Tensor::zeros({4, 5}, id), back = Tensor::zeros({5, 4});
  x.slice(0, {1, 3}).copy_(row);
  x.select(1, 2).fill_(7.0);
  back.t().copy_(x);
  const Tensor expected = Tensor::zeros({4, 5});
  expected.slice(0, {1, 3}).copy_(row);
  expected.select(1, 2).fill_(7.0);
  EXPECT_TRUE(equal(back, expected.t()));
}

TEST_F(DeviceTensorTest, SingleValuesAndTextAreFetched) {
  const Tensor x = there(Tensor::from_values({1.5F, -2.0F}));
  EXPECT_EQ(x.select(0, 1).item(), -2.0);
  EXPECT_EQ(Tensor::full({}, 9, {DType::kInt64, id}).item<std::int64_t>(), 9);
  EXPECT_EQ(x.str(), "tensor([ 1.5000, -2.0000], device='" + name() + "')");
}

TEST_F(DeviceTensorTest, GradientsCrossDevices) {
  Tensor x = spread_values({3}).set_requires_grad();
  sum(square(x.to(id)).cpu()).backward();
  expect_close(x.grad(), x.detach() * 2.0, "gradient");
  EXPECT_EQ(x.grad().device(), DeviceId{});
}

TEST_F(DeviceTensorTest, RandomNumbersAreTheCpusForOneSeed) {
  Generator a(3), b(3);
  EXPECT_TRUE(equal(Tensor::randn({40}, a, id).cpu(), Tensor::randn({40}, b)));
}

TEST_F(DeviceTensorTest, ABatchOnTheDeviceIsATensorWithoutACopy) {
  const Tensor pixels = Tensor::arange(24).to(DType::kUInt8).view({2, 3, 4});
  auto memory = std::make_shared<DeviceBuffer>(device, 24);
  {
    const Tensor x = Tensor::from_array({memory->data(), DType::kUInt8, {2, 3, 4}, id}, memory);
    EXPECT_EQ(x.device_ptr(), memory->data());
    Tensor(x).copy_(pixels);
    EXPECT_TRUE(equal((x.to(DType::kFloat32) / 255.0).cpu(), pixels.to(DType::kFloat32) / 255.0));
  }
  EXPECT_EQ(memory.use_count(), 1);
}

// ---- Training ----

std::shared_ptr<nn::Module> perceptron() {
  return std::make_shared<nn::Sequential>(nn::Flatten(), nn::Linear(72, 16), nn::ReLU(), nn::Linear(16, 3));
}
std::shared_ptr<nn::Module> convolutional() {
  return std::make_shared<nn::Sequential>(
      nn::Conv2d({.in_channels = 2, .out_channels = 4, .kernel_size = 3, .padding = 1}), nn::BatchNorm2d(4), nn::ReLU(),
      nn::MaxPool2d(2), nn::Conv2d({.in_channels = 4, .out_channels = 8, .kernel_size = 3}), nn::ReLU(),
      nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(8, 3));
}
using MakeModel = std::shared_ptr<nn::Module> (*)();
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(std::vector<Tensor>)>;

/// The loss of each of 8 steps on one batch.
std::vector<double> losses_of(MakeModel make_model, const MakeOptimizer& make_optimizer, DeviceId where) {
  manual_seed(1);
  const auto model = make_model();
  model->to(where);
  const auto optimizer = make_optimizer(model->parameters());
  const Tensor x = spread_values({6, 2, 6, 6}).to(where),
               labels = Tensor::from_values<std::int64_t>({0, 1, 2, 0, 1, 2}).to(where);
  std::vector<double> losses;
  for (int step = 0; step < 8; ++step) {
    optimizer->zero_grad();
    const Tensor loss = nn::cross_entropy(model->forward(x), labels);
    loss.backward();
    optimizer->step();
    losses.push_back(loss.item());
  }
  return losses;
}

TEST_F(DeviceTensorTest, ModelsTrainAsOnTheCpu) {
  const std::vector<MakeOptimizer> optimizers = {
      [](auto params) {
        return std::make_unique<optim::SGD>(
            params, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-3, .nesterov = true});
      },
      [](auto params) {
        return std::make_unique<optim::Adam>(params, optim::AdamOptions{.lr = 0.01, .amsgrad = true});
      }};
  for (const MakeModel model : {perceptron, convolutional}) {
    for (const MakeOptimizer& optimizer : optimizers) {
      const auto expected = losses_of(model, optimizer, {}), got = losses_of(model, optimizer, id);
      EXPECT_LT(got.back(), got.front());
      EXPECT_THAT(got, ::testing::Pointwise(::testing::DoubleNear(2e-4), expected));
    }
  }
}

TEST_F(DeviceTensorTest, AnOptimizerWithoutAKernelRefuses) {
  Tensor p = there(spread_values({3})).set_requires_grad();
  optim::RMSprop rmsprop({p});
  p.set_grad(there(Tensor::ones({3})));
  EXPECT_THAT([&] { rmsprop.step(); },
              ::testing::ThrowsMessage<NotImplementedError>(::testing::HasSubstr("rmsprop_step")));
}

TEST_F(DeviceTensorTest, StepsReuseMemoryAndLeaveNothingBehind) {
  const auto sgd = [](auto params) { return std::make_unique<optim::SGD>(params, optim::SGDOptions{.lr = 0.1}); };
  static_cast<void>(losses_of(convolutional, sgd, id));
  const MemoryStats after_one = device_memory_stats(id);
  static_cast<void>(losses_of(convolutional, sgd, id));
  const MemoryStats after_two = device_memory_stats(id);
  EXPECT_EQ(after_two.misses, after_one.misses);
  EXPECT_GT(after_two.hits, after_one.hits);
  EXPECT_EQ(after_two.in_use_bytes, 0U);
  empty_device_cache(id);
  EXPECT_EQ(device_memory_stats(id).cached_bytes, 0U);
}

}  // namespace
}  // namespace infeed
