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

// From one seed, both make the same model; then outputs and gradients are the same, too.
template <class Ours, class Theirs>
struct Pair {
  Pair(auto make_ours, auto make_theirs) : ours((manual_seed(11), make_ours())) {
    torch::manual_seed(11);
    theirs = make_theirs();
  }
  void expect_same(const Tensor& x) {
    const auto state = ours.state_dict();
    const auto parameters = theirs->named_parameters();
    ASSERT_EQ(state.size(), parameters.size() + theirs->named_buffers().size());
    const auto y = ours(x);
    const torch::Tensor expected = output_of(theirs->forward(to_torch(x)));
    expect_close(y, expected);
    sum(y * y).backward();
    (expected * expected).sum().backward();
    for (const auto& item : parameters) {
      const Tensor mine = TrainingTorchTest::find(ours.named_parameters(), item.key());
      EXPECT_TRUE(torch::allclose(to_torch(mine), item.value(), 1e-6, 0)) << item.key();
      expect_close(mine.grad(), item.value().grad());
    }
  }
  static torch::Tensor output_of(torch::Tensor y) { return y; }
  static torch::Tensor output_of(auto outputs) { return std::get<0>(outputs); }
  static void expect_close(const Tensor& a, const torch::Tensor& b) {
    EXPECT_TRUE(torch::allclose(to_torch(a), b, 1e-3, 1e-4)) << a << "\n" << b;
  }
  Ours ours;
  Theirs theirs{nullptr};
};

template <class Ours, class Theirs>
void expect_same(auto make_ours, auto make_theirs, const Tensor& x) {
  Pair<Ours, Theirs>(make_ours, make_theirs).expect_same(x);
}

TEST(LayersTorchTest, DrawsTheSameBits) {
  manual_seed(5);
  torch::manual_seed(5);
  const nn::Linear ours(7, 5);
  const torch::nn::Linear theirs(7, 5);
  EXPECT_TRUE(torch::equal(to_torch(ours.weight), theirs->weight));
  EXPECT_TRUE(torch::equal(to_torch(ours.bias), theirs->bias));
}

TEST(LayersTorchTest, BeginsAndComputesAlike) {
  expect_same<nn::Conv1d, torch::nn::Conv1d>(
      [] { return nn::Conv1d({.in_channels = 4, .out_channels = 6, .kernel_size = 3, .padding = 1, .groups = 2}); },
      [] { return torch::nn::Conv1d(torch::nn::Conv1dOptions(4, 6, 3).padding(1).groups(2)); },
      spread_values({2, 4, 9}));
  expect_same<nn::ConvTranspose2d, torch::nn::ConvTranspose2d>(
      [] { return nn::ConvTranspose2d({.in_channels = 4, .out_channels = 3, .kernel_size = 2, .stride = 2}); },
      [] { return torch::nn::ConvTranspose2d(torch::nn::ConvTranspose2dOptions(4, 3, 2).stride(2)); },
      spread_values({2, 4, 5, 5}));
  expect_same<nn::GroupNorm, torch::nn::GroupNorm>(
      [] { return nn::GroupNorm(2, 6); }, [] { return torch::nn::GroupNorm(2, 6); }, spread_values({2, 6, 3, 3}));
  expect_same<nn::LayerNorm, torch::nn::LayerNorm>(
      [] { return nn::LayerNorm(6); }, [] { return torch::nn::LayerNorm(torch::nn::LayerNormOptions({6})); },
      spread_values({2, 3, 6}));
  expect_same<nn::Embedding, torch::nn::Embedding>(
      [] { return nn::Embedding(20, 6, 3); },
      [] { return torch::nn::Embedding(torch::nn::EmbeddingOptions(20, 6).padding_idx(3)); },
      Tensor::from_values<std::int64_t>({3, 0, 19, 3}));
}

TEST(LayersTorchTest, RunsThroughSequencesAlike) {
  const nn::RecurrentOptions options{.input_size = 4, .hidden_size = 5, .num_layers = 2, .bidirectional = true};
  expect_same<nn::LSTM, torch::nn::LSTM>(
      [&] { return nn::LSTM(options); },
      [] { return torch::nn::LSTM(torch::nn::LSTMOptions(4, 5).num_layers(2).bidirectional(true)); },
      spread_values({6, 3, 4}));
  expect_same<nn::GRU, torch::nn::GRU>([] { return nn::GRU({.input_size = 4, .hidden_size = 5, .batch_first = true}); },
                                       [] { return torch::nn::GRU(torch::nn::GRUOptions(4, 5).batch_first(true)); },
                                       spread_values({3, 6, 4}));
}

TEST(LayersTorchTest, StacksTransformersAlike) {
  for (const bool gelu : {false, true}) {
    expect_same<nn::TransformerEncoderLayer, torch::nn::TransformerEncoderLayer>(
        [&] {
          nn::TransformerEncoderLayerOptions options{.d_model = 8, .nhead = 2, .dim_feedforward = 16, .dropout = 0.0};
          if (gelu) options.activation = [](const Tensor& x) { return infeed::gelu(x); };
          return nn::TransformerEncoderLayer(options);
        },
        [&] {
          torch::nn::TransformerEncoderLayerOptions options(8, 2);
          options.dim_feedforward(16).dropout(0.0);
          if (gelu) options.activation(torch::kGELU);
          return torch::nn::TransformerEncoderLayer(options);
        },
        spread_values({5, 3, 8}));
  }
}

}  // namespace
}  // namespace infeed
