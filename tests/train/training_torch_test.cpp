// Whole training steps against LibTorch: the same weights, batches and options give the same losses and weights.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {
namespace {

torch::Tensor to_torch(const Tensor& tensor) {
  const Tensor plain = tensor.detach().contiguous();
  const bool integers = plain.dtype() == DType::kInt64;
  return torch::from_blob(plain.data_ptr(), plain.shape().span(), integers ? torch::kInt64 : torch::kFloat32).clone();
}

torch::optim::SGDOptions to_torch(const optim::SGDOptions& o) {
  return torch::optim::SGDOptions(o.lr)
      .momentum(o.momentum)
      .dampening(o.dampening)
      .weight_decay(o.weight_decay)
      .nesterov(o.nesterov);
}

const Tensor kLabels = Tensor::from_values<std::int64_t>({0, 1, 2, 3, 4, 0, 1, 2});

struct TrainingTorchTest : testing::TestWithParam<optim::SGDOptions> {
  TrainingTorchTest() {
    const std::vector<nn::NamedTensor> state = ours.state_dict();
    const torch::NoGradGuard no_grad;
    for (auto& item : theirs->named_parameters()) item.value().copy_(to_torch(find(state, item.key())));
  }

  static Tensor find(const std::vector<nn::NamedTensor>& state, const std::string& name) {
    for (const nn::NamedTensor& entry : state) {
      if (entry.name == name) return entry.tensor;
    }
    ADD_FAILURE() << "no " << name;
    return {};
  }

  torch::Tensor torch_loss(const Tensor& images) {
    return torch::nn::functional::cross_entropy(theirs->forward(to_torch(images)), to_torch(kLabels));
  }

  static void take_step(auto& optimizer, auto& loss) {
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }

  void expect_same(const std::string& name, const torch::Tensor& expected) {
    EXPECT_TRUE(torch::allclose(to_torch(find(ours.state_dict(), name)), expected, 1e-3, 1e-4)) << name;
  }

  nn::Sequential ours = [] {
    manual_seed(4);
    return nn::Sequential(nn::Conv2d({.in_channels = 3, .out_channels = 16, .kernel_size = 3, .padding = 1}),
                          nn::BatchNorm2d(16), nn::ReLU(), nn::MaxPool2d(2),
                          nn::Conv2d({.in_channels = 16, .out_channels = 32, .kernel_size = 3, .bias = false}),
                          nn::BatchNorm2d(32), nn::ReLU(), nn::AdaptiveAvgPool2d(1), nn::Flatten(), nn::Linear(32, 5));
  }();
  torch::nn::Sequential theirs{torch::nn::Conv2d(torch::nn::Conv2dOptions(3, 16, 3).padding(1)),
                               torch::nn::BatchNorm2d(16),
                               torch::nn::ReLU(),
                               torch::nn::MaxPool2d(2),
                               torch::nn::Conv2d(torch::nn::Conv2dOptions(16, 32, 3).bias(false)),
                               torch::nn::BatchNorm2d(32),
                               torch::nn::ReLU(),
                               torch::nn::AdaptiveAvgPool2d(1),
                               torch::nn::Flatten(),
                               torch::nn::Linear(32, 5)};
};

TEST_P(TrainingTorchTest, TakesTheSameSteps) {
  optim::SGD sgd(ours.parameters(), GetParam());
  torch::optim::SGD torch_sgd(theirs->parameters(), to_torch(GetParam()));
  for (int i = 0; i < 5; ++i) {
    const Tensor images = spread_values({8, 3, 12, 12}, i);
    const Tensor loss = nn::cross_entropy(ours(images), kLabels);
    const torch::Tensor expected = torch_loss(images);
    ASSERT_NEAR(loss.item(), expected.item<double>(), 1e-4) << "step " << i;
    take_step(sgd, loss);
    take_step(torch_sgd, expected);
  }
  for (const auto& item : theirs->named_parameters()) expect_same(item.key(), item.value());
  for (const auto& item : theirs->named_buffers()) expect_same(item.key(), item.value());
}

INSTANTIATE_TEST_SUITE_P(Options, TrainingTorchTest,
                         testing::Values(optim::SGDOptions{.lr = 0.05}, optim::SGDOptions{.lr = 0.05, .momentum = 0.9},
                                         optim::SGDOptions{
                                             .lr = 0.05, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true},
                                         optim::SGDOptions{.lr = 0.05, .momentum = 0.5, .dampening = 0.3}));

}  // namespace
}  // namespace infeed
