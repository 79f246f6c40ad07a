// A small network learns, and a step costs no new memory.
#include <gtest/gtest.h>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {
namespace {

// Images of noise; the class says which quarter is bright.
struct Quarters {
  Tensor image = Tensor::uniform({64, 3, 16, 16}, 0.0f, 1.0f);
  Tensor label = Tensor::empty({64}, DType::kInt64);
  Quarters() {
    for (std::int64_t i = 0; i < 64; ++i) {
      label.data<std::int64_t>()[i] = i % 4;
      image.select(0, i).narrow(1, i % 2 * 8, 8).narrow(2, i / 2 % 2 * 8, 8).mul_(1.5);
    }
  }
};

struct TrainingTest : testing::Test {
  TrainingTest() { manual_seed(11); }
  double step(const Quarters& data) {
    sgd.zero_grad();
    const Tensor loss = nn::cross_entropy(net(data.image), data.label);
    loss.backward();
    sgd.step();
    return loss.item();
  }
  nn::Sequential net = [] {
    manual_seed(11);
    return nn::Sequential(nn::Conv2d({.in_channels = 3, .out_channels = 8, .kernel_size = 3, .padding = 1}),
                          nn::BatchNorm2d(8), nn::ReLU(), nn::MaxPool2d(2),
                          nn::Conv2d({.in_channels = 8, .out_channels = 16, .kernel_size = 3}), nn::ReLU(),
                          nn::AdaptiveAvgPool2d(2), nn::Flatten(), nn::Linear(64, 4));
  }();
  optim::SGD sgd{net.parameters(), {.lr = 0.1, .momentum = 0.9}};
};

TEST_F(TrainingTest, ASmallNetworkLearns) {
  const Quarters data;
  const double first = step(data);
  double last = first;
  for (int i = 0; i < 60; ++i) last = step(data);
  EXPECT_GT(first, 1.0);
  EXPECT_LT(last, 0.1);
  net.eval();
  const NoGradGuard no_grad;
  EXPECT_GE(sum(eq(argmax(net(data.image), 1), data.label)).item<int>(), 60);
}

TEST_F(TrainingTest, AStepReusesTheMemoryOfTheOneBefore) {
  const Quarters data;
  for (int i = 0; i < 2; ++i) (void)step(data);
  const auto misses = host_allocator().stats().misses;
  for (int i = 0; i < 3; ++i) (void)step(data);
  EXPECT_EQ(host_allocator().stats().misses, misses);
}

}  // namespace
}  // namespace infeed
