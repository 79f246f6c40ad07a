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

TEST(ModuleTest, ListsAllThatDoesNotFit) {
  Linear net(2, 2);
  try {
    net.load_state_dict(std::vector<NamedTensor>{{"weight", Tensor::zeros({3})}, {"scale", Tensor::zeros({2})}});
    FAIL();
  } catch (const StateError& error) {
    const std::string text = error.what();
    for (const char* part : {"Missing key(s) in state_dict: \"bias\"", "Unexpected key(s) in state_dict: \"scale\"",
                             "size mismatch for weight"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST(ModuleTest, LoadsWhatFitsUnlessStrict) {
  Linear net(1, 1);
  const std::vector<NamedTensor> state = {{"weight", Tensor::full({1, 1}, 7.0)}, {"scale", Tensor::zeros({2})}};
  const IncompatibleKeys keys = net.load_state_dict(state, false);
  EXPECT_EQ(keys.missing, std::vector<std::string>{"bias"});
  EXPECT_EQ(keys.unexpected, std::vector<std::string>{"scale"});
  EXPECT_EQ(net.weight.item(), 7.0);
}

struct Shared : Module {
  std::shared_ptr<Linear> a = register_module("a", Linear(1, 1));
  std::shared_ptr<Linear> b = register_module("b", a);
  Tensor scratch = register_buffer("scratch", Tensor::zeros({1}), false);
};

TEST(ModuleTest, ListsSharedPartsOnceAndSavesThemTwice) {
  Shared net;
  EXPECT_EQ(names_of(net.named_parameters()), (std::vector<std::string>{"a.weight", "a.bias"}));
  EXPECT_EQ(names_of(net.state_dict()), (std::vector<std::string>{"a.weight", "a.bias", "b.weight", "b.bias"}));
  EXPECT_EQ(names_of(net.named_buffers()), std::vector<std::string>{"scratch"});
  EXPECT_EQ(net.named_modules().size(), 2U);
  EXPECT_THROW((void)net(Tensor::zeros({1})), NotImplementedError);
}

TEST(ModuleTest, AppliesToChildrenFirst) {
  Net net;
  std::vector<Module*> seen;
  net.apply([&](Module& module) { seen.push_back(&module); });
  ASSERT_EQ(seen.size(), net.named_modules().size());
  EXPECT_EQ(seen.back(), &net);
  EXPECT_EQ(net.named_modules()[2].path, "body.0");
}

TEST(ModuleTest, ConvertsFloatsOnly) {
  Sequential net = small_net();
  sum(net(spread_values({2, 3, 8, 8}))).backward();
  net.to(DType::kFloat64);
  for (const Tensor& parameter : net.parameters()) {
    EXPECT_EQ(parameter.dtype(), DType::kFloat64);
    EXPECT_EQ(parameter.grad().dtype(), DType::kFloat64);
  }
  EXPECT_EQ(net.named_buffers().back().tensor.dtype(), DType::kInt64);
  sum(net(spread_values({2, 3, 8, 8}).to(DType::kFloat64))).backward();
  EXPECT_THROW(net.to(DType::kInt32), TypeError);
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

TEST(ModuleListTest, NamesItsModulesByNumber) {
  ModuleList<Linear> list;
  list.append(Linear(2, 3));
  list.append(Linear(3, 1));
  EXPECT_EQ(names_of(list.state_dict()).back(), "1.bias");
  Tensor x = Tensor::ones({1, 2});
  for (const auto& layer : list) x = (*layer)(x);
  EXPECT_EQ(x.shape(), (Shape{1, 1}));
}

TEST(DropoutTest, DropsInTrainingOnly) {
  Dropout dropout(0.5);
  const Tensor x = Tensor::ones({1000});
  const double kept = sum(gt(dropout(x), 0.0)).item();
  EXPECT_GT(kept, 400);
  EXPECT_LT(kept, 600);
  dropout.eval();
  EXPECT_TRUE(dropout(x).is_same(x));
  EXPECT_THROW(Dropout(1.5), ValueError);
}

TEST(EmbeddingTest, KeepsThePaddingRowAtZero) {
  Embedding embedding(4, 2, -1);
  sum(embedding(Tensor::from_values<std::int64_t>({3, 1}))).backward();
  EXPECT_EQ(values_of(embedding.weight.select(0, 3)), (std::vector<double>{0, 0}));
  EXPECT_EQ(values_of(sum(embedding.weight.grad(), {1})), (std::vector<double>{0, 2, 0, 0}));
  EXPECT_THROW(Embedding(4, 2, 4), ConfigError);
}

TEST(BatchNormTest, UsesTheBatchWhereItTracksNothing) {
  BatchNorm2d norm(1, {.affine = false, .track_running_stats = false});
  norm.eval();
  EXPECT_NEAR(mean(norm(spread_values({2, 1, 3, 3}) + 5.0)).item(), 0.0, 1e-5);
  EXPECT_TRUE(norm.state_dict().empty());
}

struct AttentionTest : testing::Test {
  static MultiheadAttention attention(bool batch_first) {
    manual_seed(2);
    return MultiheadAttention({.embed_dim = 8, .num_heads = 2, .batch_first = batch_first});
  }
  static void expect_near(const Tensor& a, const Tensor& b) { EXPECT_TRUE(allclose(a, b, 1e-5, 1e-6)) << a << b; }
  MultiheadAttention first = attention(true), last = attention(false);
  Tensor x = spread_values({3, 5, 8});
  Tensor causal = triu(Tensor::ones({5, 5}, DType::kBool), 1);
};

TEST_F(AttentionTest, TakesBatchesInEitherPlaceOrNone) {
  const Tensor y = first(x);
  expect_near(last(x.transpose(0, 1)).transpose(0, 1), y);
  expect_near(first(x.select(0, 1)), y.select(0, 1));
  expect_near(first.forward(x, x.clone(), x), y);  // three projections instead of one
}

TEST_F(AttentionTest, MasksAlikeInEveryForm) {
  const Tensor y = first.forward(x, x, x, {.is_causal = true});
  expect_near(first.forward(x, x, x, {.mask = causal}), y);
  expect_near(first.forward(x, x, x, {.mask = causal.unsqueeze(0).expand({6, 5, 5})}), y);
  const Tensor nobody = Tensor::zeros({3, 5}, DType::kBool);
  expect_near(first.forward(x, x, x, {.key_padding = nobody, .is_causal = true}), y);
  expect_near(first.forward(x, x, x, {.mask = causal, .key_padding = nobody}), y);
}

TEST_F(AttentionTest, DoesNotSeePaddedKeys) {
  Tensor padding = Tensor::zeros({3, 5}, DType::kBool);
  padding.narrow(1, 3, 2).fill_(1);
  const Tensor y = first.forward(x, x, x, {.key_padding = padding});
  const Tensor seen = x.narrow(1, 0, 3);
  expect_near(y, first.forward(x, seen, seen));
}

TEST(RecurrentTest, GoesOnFromItsState) {
  LSTM lstm({.input_size = 3, .hidden_size = 4, .num_layers = 2, .batch_first = true});
  const Tensor x = spread_values({2, 6, 3});
  const RecurrentResult whole = lstm.forward(x, {});
  const RecurrentResult first = lstm.forward(x.narrow(1, 0, 2), {});
  const RecurrentResult rest = lstm.forward(x.narrow(1, 2, 4), first.state);
  EXPECT_TRUE(allclose(cat({first.output, rest.output}, 1), whole.output));
  for (std::size_t i = 0; i < 2; ++i) EXPECT_TRUE(allclose(rest.state[i], whole.state[i]));
  EXPECT_TRUE(allclose(lstm(x.select(0, 1)), whole.output.select(0, 1)));
}

TEST(TransformerTest, BeginsWithEqualLayers) {
  TransformerEncoder encoder({.d_model = 8, .nhead = 2, .dim_feedforward = 16, .dropout = 0.0}, 2, true);
  EXPECT_TRUE(equal(encoder.layers->operator[](0).linear1->weight, encoder.layers->operator[](1).linear1->weight));
  EXPECT_EQ(names_of(encoder.state_dict()).front(), "layers.0.self_attn.in_proj_weight");
  EXPECT_EQ(names_of(encoder.state_dict()).back(), "norm.bias");
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

TEST(BatchNormTest, TakesBfloat16WithStatisticsInFloat32) {
  const Tensor x = spread_values({4, 3, 5, 5});
  const auto run = [&](DType dtype) {
    BatchNorm2d norm(3);
    const Tensor leaf = x.to(dtype, true).set_requires_grad();
    const Tensor y = norm.forward(leaf, Activation::kRelu);
    sum(y * spread_values(x.shape(), 5)).backward();
    return std::vector<Tensor>{y, leaf.grad(), norm.weight.grad(), norm.running_var};
  };
  const auto exact = run(DType::kFloat32);
  const auto rounded = run(DType::kBFloat16);
  EXPECT_EQ(rounded[0].dtype(), DType::kBFloat16);
  for (std::size_t i = 0; i < exact.size(); ++i)
    EXPECT_TRUE(allclose(rounded[i].to(DType::kFloat32), exact[i], 0.02, 0.02)) << i;
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

TEST(FusedAttentionTest, IsDifferentiableTwice) {
  const auto second = [](DType dtype) {
    const Tensor x = spread_values({1, 2, 5, 4}).to(dtype).set_requires_grad();
    const Tensor y = scaled_dot_product_attention(x, x * 2.0, x, {}, {.is_causal = true});
    const Tensor loss = sum(y * y);
    const Tensor slope = grad({&loss, 1}, {&x, 1}, {}, {.create_graph = true})[0];
    sum(slope * slope).backward();
    return values_of(x.grad());
  };
  const std::vector<double> exact = second(DType::kFloat64);
  const std::vector<double> fused = second(DType::kFloat32);
  for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(fused[i], exact[i], 1e-4) << i;
}

TEST(FusedAttentionTest, GivesZerosToAQueryThatSeesNoKey) {
  const Tensor x = spread_values({1, 1, 2, 4}).set_requires_grad();
  const Tensor y = scaled_dot_product_attention(x, x, x, gt(Tensor::from_values({0.0f, 1.0f}, {2, 1}), 0.5));
  sum(y).backward();
  EXPECT_EQ(values_of(y.index({0, 0, 0})), std::vector<double>(4, 0.0));
  for (const double value : values_of(x.grad())) EXPECT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace infeed::nn
