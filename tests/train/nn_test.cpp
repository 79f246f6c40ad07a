#include <gtest/gtest.h>

#include <cmath>

#include "infeed/base/error.h"
#include "infeed/train/nn/init.h"
#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed::nn {
namespace {

Sequential small_net() {
  return Sequential(Conv2d({.in_channels = 3, .out_channels = 8, .kernel_size = 3, .padding = 1}), BatchNorm2d(8),
                    ReLU(), MaxPool2d(2), AdaptiveAvgPool2d(1), Flatten(), Linear(8, 4), ReLU());
}

std::vector<std::string> names_of(const std::vector<NamedTensor>& tensors) {
  std::vector<std::string> names;
  for (const NamedTensor& entry : tensors) names.push_back(entry.name);
  return names;
}

struct Net : Module {
  std::shared_ptr<Sequential> body = register_module("body", small_net());
  std::shared_ptr<Linear> head = register_module("head", Linear(4, 2));
  Tensor forward(const Tensor& x) override { return (*head)((*body)(x)); }
};

TEST(ModuleTest, NamesPartsAsPyTorchDoes) {
  EXPECT_EQ(names_of(small_net().state_dict()),
            (std::vector<std::string>{"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
                                      "1.num_batches_tracked", "6.weight", "6.bias"}));
  EXPECT_EQ(names_of(Net().named_parameters()).back(), "head.bias");
  EXPECT_EQ(names_of(Net().named_buffers()).front(), "body.1.running_mean");
}

TEST(ModuleTest, SwitchesModeOfAllParts) {
  Net net;
  net.eval();
  EXPECT_FALSE(net.body->children()[1].module->is_training());
  net.train();
  EXPECT_TRUE(net.body->children()[1].module->is_training());
}

TEST(ModuleTest, LoadsWhatAnotherSaved) {
  manual_seed(1);
  Sequential a = small_net();
  Sequential b = small_net();
  const Tensor x = spread_values({2, 3, 8, 8});
  (void)a(x);
  b.load_state_dict(a.state_dict());
  a.eval();
  b.eval();
  EXPECT_EQ(values_of(a(x)), values_of(b(x)));
}

TEST(ModuleTest, NamesWhatDoesNotFitAState) {
  Sequential net = small_net();
  std::vector<NamedTensor> state = net.state_dict();
  state.back().tensor = Tensor::zeros({5});
  EXPECT_THROW(net.load_state_dict(state), StateError);
  state.back() = {"6.scale", Tensor::zeros({4})};
  EXPECT_THROW(net.load_state_dict(state), StateError);
  state.pop_back();
  EXPECT_THROW(net.load_state_dict(state), StateError);
}

TEST(ModuleTest, RefusesANameTwice) {
  struct Twice : Net {
    Twice() { register_module("head", Linear(1, 1)); }
  };
  EXPECT_THROW(Twice(), ConfigError);
}

TEST(ModuleTest, BeginsWithPyTorchsRangesFromASeed) {
  manual_seed(3);
  const Conv2d conv({.in_channels = 4, .out_channels = 64, .kernel_size = 5});
  manual_seed(3);
  const Conv2d same({.in_channels = 4, .out_channels = 64, .kernel_size = 5});
  EXPECT_EQ(values_of(conv.weight), values_of(same.weight));
  for (const Tensor& tensor : {conv.weight, conv.bias}) {
    EXPECT_LT(max(tensor.detach()).item(), 0.1);  // 1 / sqrt(4 * 5 * 5)
    EXPECT_GT(max(tensor.detach()).item(), 0.09);
    EXPECT_LT(max(-tensor.detach()).item(), 0.1001);
  }
}

struct Outcome {
  std::vector<double> output;
  std::vector<std::vector<double>> grads;
};

Outcome outcome_of(Module& net, const Tensor& y) {
  net.zero_grad();
  sum(y).backward();
  Outcome outcome{values_of(y), {}};
  for (const Tensor& parameter : net.parameters()) outcome.grads.push_back(values_of(parameter.grad()));
  return outcome;
}

// The same layers one by one, where nothing is fused.
TEST(SequentialTest, ComputesWhatItsLayersCompute) {
  manual_seed(5);
  Sequential net = small_net();
  const Tensor x = spread_values({4, 3, 8, 8});
  Tensor y = x;
  for (const NamedModule& layer : net.children()) y = layer.module->forward(y);
  const Outcome expected = outcome_of(net, y);
  const Outcome fused = outcome_of(net, net(x));
  EXPECT_EQ(fused.output, expected.output);
  for (std::size_t i = 0; i < fused.grads.size(); ++i) {
    for (std::size_t j = 0; j < fused.grads[i].size(); ++j)
      ASSERT_NEAR(fused.grads[i][j], expected.grads[i][j], 1e-5) << i;
  }
}

TEST(BatchNormTest, MovesItsRunningStatisticsInTrainingOnly) {
  BatchNorm2d norm(1);
  const Tensor x = Tensor::from_values({1.0f, 2.0f, 3.0f, 6.0f}, {2, 1, 1, 2});
  (void)norm(x);
  EXPECT_NEAR(norm.running_mean.item(), 0.3, 1e-6);                    // 0.1 * mean
  EXPECT_NEAR(norm.running_var.item(), 0.9 + 0.1 * 14.0 / 3.0, 1e-6);  // unbiased
  norm.eval();
  const Tensor y = norm(x);
  EXPECT_EQ(norm.num_batches_tracked.item<int>(), 1);
  EXPECT_NEAR(y.select(0, 0).select(2, 1).item(), (2.0 - 0.3) / std::sqrt(norm.running_var.item() + 1e-5), 1e-5);
}

TEST(BatchNormTest, EvaluatesTheSameWithAndWithoutAGraph) {
  BatchNorm2d norm(3);
  (void)norm(spread_values({4, 3, 5, 5}));
  norm.eval();
  const Tensor x = spread_values({2, 3, 5, 5}, 9);
  const std::vector<double> recorded = values_of(norm(x));
  const NoGradGuard no_grad;
  const std::vector<double> plain = values_of(norm(x));
  for (std::size_t i = 0; i < plain.size(); ++i) ASSERT_NEAR(recorded[i], plain[i], 1e-5);
}

TEST(FunctionalTest, TakesBothMemoryFormats) {
  const Conv2d conv({.in_channels = 3, .out_channels = 5, .kernel_size = 3});
  const Tensor x = spread_values({2, 3, 20, 20});
  const Tensor y = conv.forward(x, Activation::kNone);
  EXPECT_TRUE(y.is_contiguous(MemoryFormat::kChannelsLast));
  EXPECT_EQ(values_of(conv.forward(x.contiguous(MemoryFormat::kChannelsLast), Activation::kNone)), values_of(y));
}

TEST(FunctionalTest, NamesOperationAndShapesOnMismatch) {
  Conv2d conv({.in_channels = 3, .out_channels = 5, .kernel_size = 3});
  EXPECT_THROW((void)conv(Tensor::zeros({2, 4, 8, 8})), RuntimeError);
  EXPECT_THROW((void)conv(Tensor::zeros({2, 3, 2, 2})), RuntimeError);
  EXPECT_THROW((void)conv(Tensor::zeros({2, 3, 8, 8}, DType::kUInt8)), RuntimeError);
  EXPECT_THROW((void)Linear(3, 4).forward(Tensor::zeros({2, 4})), RuntimeError);
  EXPECT_THROW((void)max_pool2d(Tensor::zeros({1, 1, 2, 2}), 3), RuntimeError);
  EXPECT_THROW((void)BatchNorm2d(3).forward(Tensor::zeros({1, 3, 1, 1})), ValueError);
  EXPECT_THROW(Conv2d({.in_channels = 3, .out_channels = 5, .kernel_size = 3, .groups = 2}), ConfigError);
}

TEST(CrossEntropyTest, NamesABadLabel) {
  const Tensor logits = Tensor::zeros({2, 3});
  EXPECT_THROW((void)cross_entropy(logits, Tensor::from_values<std::int64_t>({0, 3})), IndexError);
  EXPECT_THROW((void)cross_entropy(logits, Tensor::zeros({2}, DType::kInt32)), RuntimeError);
  EXPECT_THROW((void)cross_entropy(logits, Tensor::zeros({3}, DType::kInt64)), ValueError);
}

TEST(CrossEntropyTest, IsNanWhereNoLabelCounts) {
  const Tensor labels = Tensor::full({2}, -100.0, DType::kInt64);
  EXPECT_TRUE(std::isnan(cross_entropy(Tensor::zeros({2, 3}), labels).item()));
}

}  // namespace
}  // namespace infeed::nn
