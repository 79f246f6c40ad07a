// Layers, losses and pooling, forward and backward, against LibTorch.
#include "train/operators_torch.h"

namespace infeed {
namespace {

namespace F = torch::nn::functional;
using LayersTorchTest = TorchOperatorTest;

TEST_P(LayersTorchTest, AgreesForwardAndBackward) { expect_agreement(); }

const Tensor kLabels = Tensor::from_values<std::int64_t>({2, 0, -100, 9, 1, 1});
// Masks of attention: which keys a query sees, and what is added to its scores.
const Tensor kSeen = gt(spread_values({3, 70, 100}, 5) + Tensor::arange(100, DType::kFloat32) * -0.001, -0.2);
const Tensor kBias = spread_values({3, 1, 9}, 3) * 4.0;
const Tensor kAllLabels = Tensor::from_values<std::int64_t>({2, 0, 0, 9, 1, 1});
const torch::Tensor kTorchLabels = torch::tensor({2, 0, -100, 9, 1, 1}, torch::kInt64);
constexpr auto kLast = MemoryFormat::kChannelsLast;

const Operator kLayers[] = {
    {"Linear",
     {{6, 7}, {5, 7}, {5}},
     [](auto& in) { return nn::linear(in[0], in[1], in[2]); },
     [](auto& in) { return F::linear(in[0], in[1], in[2]); }},
    {"LinearRelu3d",
     {{2, 6, 7}, {5, 7}, {5}},
     [](auto& in) { return nn::linear(in[0], in[1], in[2], nn::Activation::kRelu); },
     [](auto& in) { return torch::relu(F::linear(in[0], in[1], in[2])); }},
    {"Conv",
     {{4, 3, 17, 16}, {8, 3, 3, 3}, {8}},
     [](auto& in) { return nn::conv2d(in[0], in[1], in[2], {.padding = 1}); },
     [](auto& in) { return F::conv2d(in[0], in[1], F::Conv2dFuncOptions().bias(in[2]).padding(1)); }},
    {"ConvChannelsLast",
     {{2, 16, 9, 9}, {32, 16, 3, 3}, {32}},
     [](auto& in) { return nn::conv2d(in[0].contiguous(kLast), in[1], in[2], {.stride = 2}); },
     [](auto& in) { return F::conv2d(in[0], in[1], F::Conv2dFuncOptions().bias(in[2]).stride(2)); }},
    {"ConvRelu",
     {{2, 16, 9, 9}, {8, 16, 1, 1}, {8}},
     [](auto& in) { return nn::conv2d(in[0], in[1], in[2], {.activation = nn::Activation::kRelu}); },
     [](auto& in) { return torch::relu(F::conv2d(in[0], in[1], F::Conv2dFuncOptions().bias(in[2]))); }},
    {"ConvUneven",
     {{2, 4, 12, 13}, {6, 2, 3, 2}},
     [](auto& in) {
       return nn::conv2d(in[0], in[1], {}, {.stride = {3, 2}, .padding = {1, 0}, .dilation = {2, 1}, .groups = 2});
     },
     [](auto& in) {
       return F::conv2d(in[0], in[1], F::Conv2dFuncOptions().stride({3, 2}).padding({1, 0}).dilation({2, 1}).groups(2));
     }},
    {"DepthwiseConv",
     {{2, 32, 8, 8}, {32, 1, 3, 3}},
     [](auto& in) { return nn::conv2d(in[0], in[1], {}, {.padding = 1, .groups = 32}); },
     [](auto& in) { return F::conv2d(in[0], in[1], F::Conv2dFuncOptions().padding(1).groups(32)); }},
    {"BatchNorm",
     {{5, 16, 6, 7}, {16}, {16}},
     [](auto& in) { return nn::batch_norm(in[0], {}, {}, in[1], in[2], {.training = true, .eps = 1e-3}); },
     [](auto& in) {
       return F::batch_norm(in[0], {}, {},
                            F::BatchNormFuncOptions().weight(in[1]).bias(in[2]).training(true).eps(1e-3));
     }},
    {"BatchNormRelu",
     {{5, 3, 6, 7}, {3}, {3}},
     [](auto& in) {
       return nn::batch_norm(in[0], {}, {}, in[1], in[2], {.training = true, .activation = nn::Activation::kRelu});
     },
     [](auto& in) {
       return torch::relu(
           F::batch_norm(in[0], {}, {}, F::BatchNormFuncOptions().weight(in[1]).bias(in[2]).training(true)));
     }},
    {"BatchNormEval",
     {{5, 3, 6, 7}, {3}, {3}},
     [](auto& in) { return nn::batch_norm(in[0], Tensor::full({3}, 0.2), Tensor::full({3}, 1.5), in[1], in[2], {}); },
     [](auto& in) {
       return F::batch_norm(in[0], torch::full({3}, 0.2), torch::full({3}, 1.5),
                            F::BatchNormFuncOptions().weight(in[1]).bias(in[2]));
     }},
    {"MaxPool",
     {{3, 16, 10, 11}},
     [](auto& in) { return nn::max_pool2d(in[0], 2); },
     [](auto& in) { return torch::max_pool2d(in[0], 2); }},
    {"MaxPoolOverlapping",
     {{3, 5, 10, 11}},
     [](auto& in) {
       return nn::max_pool2d(in[0], {3, 2}, {.stride = 2, .padding = {1, 0}});
     },
     [](auto& in) {
       return torch::max_pool2d(in[0], {3, 2}, {2, 2}, {1, 0});
     }},
    {"AvgPool",
     {{3, 5, 10, 11}},
     [](auto& in) { return nn::avg_pool2d(in[0], 3, {.stride = 2}); },
     [](auto& in) { return torch::avg_pool2d(in[0], 3, 2); }},
    {"AdaptivePool",
     {{3, 5, 10, 11}},
     [](auto& in) {
       return nn::adaptive_avg_pool2d(in[0], {3, 4});
     },
     [](auto& in) {
       return torch::adaptive_avg_pool2d(in[0], {3, 4});
     }},
    {"GlobalPool",
     {{3, 16, 8, 8}},
     [](auto& in) { return nn::adaptive_avg_pool2d(in[0], 1); },
     [](auto& in) {
       return torch::adaptive_avg_pool2d(in[0], {1, 1});
     }},
    {"Softmax",
     {{3, 4, 5}},
     [](auto& in) { return nn::softmax(in[0], 1); },
     [](auto& in) { return torch::softmax(in[0], 1); }},
    {"LogSoftmax",
     {{30, 50}},
     [](auto& in) { return nn::log_softmax(in[0], 1); },
     [](auto& in) { return torch::log_softmax(in[0], 1); }},
    {"CrossEntropy",
     {{6, 10}},
     [](auto& in) { return nn::cross_entropy(in[0], kLabels); },
     [](auto& in) { return F::cross_entropy(in[0], kTorchLabels); }},
    {"SmoothedCrossEntropy",
     {{6, 10}},
     [](auto& in) { return nn::cross_entropy(in[0], kAllLabels, {.ignore_index = 9, .label_smoothing = 0.2}); },
     [](auto& in) {
       return F::cross_entropy(in[0], kTorchLabels.clamp_min(0),
                               F::CrossEntropyFuncOptions().ignore_index(9).label_smoothing(0.2));
     }},
};

const torch::Tensor kTargets = torch::tensor({0.2, 0.9, 0.0, 1.0, 0.5, 0.4}, torch::kFloat32).view({2, 3});
const Tensor kOurTargets = Tensor::from_values({0.2f, 0.9f, 0.0f, 1.0f, 0.5f, 0.4f}, {2, 3});
const Tensor kWeights = Tensor::from_values({0.5f, 2.0f, 1.0f, 3.0f, 1.f, 1.f, 1.f, 1.f, 0.1f, 1.f});

const Operator kLosses[] = {
    {"Mse",
     {{2, 3}, {2, 3}},
     [](auto& in) { return nn::mse_loss(in[0], in[1]); },
     [](auto& in) { return torch::mse_loss(in[0], in[1]); }},
    {"L1",
     {{2, 3}, {2, 3}},
     [](auto& in) { return nn::l1_loss(in[0], in[1], nn::Reduction::kSum); },
     [](auto& in) { return F::l1_loss(in[0], in[1], F::L1LossFuncOptions(torch::kSum)); }},
    {"SmoothL1",
     {{2, 3}, {2, 3}},
     [](auto& in) { return nn::smooth_l1_loss(in[0], in[1], nn::Reduction::kNone, 0.5); },
     [](auto& in) { return F::smooth_l1_loss(in[0], in[1], F::SmoothL1LossFuncOptions(torch::kNone), 0.5); }},
    {"Bce",
     {{2, 3}},
     [](auto& in) { return nn::binary_cross_entropy(sigmoid(in[0]), kOurTargets); },
     [](auto& in) { return torch::binary_cross_entropy(torch::sigmoid(in[0]), kTargets); }},
    {"BceLogits",
     {{2, 3}, {3}},
     [](auto& in) {
       return nn::binary_cross_entropy_with_logits(in[0], kOurTargets, {}, in[1].detach() + 2.0) + sum(in[1]);
     },
     [](auto& in) {
       return torch::binary_cross_entropy_with_logits(in[0], kTargets, {}, in[1].detach() + 2.0) + in[1].sum();
     }},
    {"KlDiv",
     {{2, 3}},
     [](auto& in) { return nn::kl_div(in[0], kOurTargets, nn::Reduction::kMean, false, true); },
     [](auto& in) { return torch::kl_div(in[0], kTargets, at::Reduction::Sum) / 2.0; }},
    {"WeightedCrossEntropy",
     {{6, 10}},
     [](auto& in) { return nn::cross_entropy(in[0], kLabels, {.label_smoothing = 0.1, .weight = kWeights}); },
     [](auto& in) {
       return F::cross_entropy(in[0], kTorchLabels,
                               F::CrossEntropyFuncOptions().label_smoothing(0.1).weight(to_torch(kWeights)));
     }},
    {"CrossEntropyNone",
     {{6, 10}},
     [](auto& in) { return nn::cross_entropy(in[0], kLabels, {.reduction = nn::Reduction::kNone}); },
     [](auto& in) {
       return F::cross_entropy(in[0], kTorchLabels, F::CrossEntropyFuncOptions().reduction(torch::kNone));
     }},
    {"CrossEntropyOfPixels",
     {{2, 3, 2, 2}},
     [](auto& in) {
       return nn::cross_entropy(in[0], Tensor::from_values<std::int64_t>({0, 1, 2, 2, 1, 0, 0, -100}, {2, 2, 2}));
     },
     [](auto& in) {
       return F::cross_entropy(in[0], torch::tensor({0, 1, 2, 2, 1, 0, 0, -100}, torch::kInt64).view({2, 2, 2}));
     }},
    {"CrossEntropyOfProbabilities",
     {{2, 3}},
     [](auto& in) { return nn::cross_entropy(in[0], kOurTargets, {.label_smoothing = 0.1}); },
     [](auto& in) { return F::cross_entropy(in[0], kTargets, F::CrossEntropyFuncOptions().label_smoothing(0.1)); }},
    {"LayerNorm",
     {{4, 6, 33}, {33}, {33}},
     [](auto& in) { return nn::layer_norm(in[0], {33}, in[1], in[2]); },
     [](auto& in) { return torch::layer_norm(in[0], {33}, in[1], in[2]); }},
    {"LayerNorm2d",
     {{4, 6, 5}},
     [](auto& in) {
       return nn::layer_norm(in[0], {6, 5});
     },
     [](auto& in) {
       return torch::layer_norm(in[0], {6, 5});
     }},
    {"GroupNorm",
     {{2, 6, 5, 4}, {6}, {6}},
     [](auto& in) { return nn::group_norm(in[0], 3, in[1], in[2]); },
     [](auto& in) { return torch::group_norm(in[0], 3, in[1], in[2]); }},
    {"BatchNorm1d",
     {{6, 4}, {4}, {4}},
     [](auto& in) { return nn::batch_norm(in[0], {}, {}, in[1], in[2], {.training = true}); },
     [](auto& in) {
       return F::batch_norm(in[0], {}, {}, F::BatchNormFuncOptions().weight(in[1]).bias(in[2]).training(true));
     }},
    {"Embedding",
     {{5, 3}},
     [](auto& in) {
       return nn::embedding(kPicks.view({2, 2}), in[0], 1);
     },
     [](auto& in) {
       return torch::embedding(in[0], kTorchPicks.view({2, 2}), 1);
     }},
    {"Attention",
     {{2, 2, 5, 8}, {2, 2, 5, 8}, {2, 2, 5, 8}},
     [](auto& in) { return nn::scaled_dot_product_attention(in[0], in[1], in[2], {}, {.is_causal = true}); },
     [](auto& in) { return torch::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, true); }},
    {"AttentionOfFewerQueries",
     {{2, 3, 70, 20}, {2, 3, 100, 20}, {2, 3, 100, 36}},
     [](auto& in) { return nn::scaled_dot_product_attention(in[0], in[1], in[2], kSeen); },
     [](auto& in) { return torch::scaled_dot_product_attention(in[0], in[1], in[2], to_torch(kSeen)); }},
    {"CausalAttentionOfMoreQueries",
     {{1, 2, 130, 33}, {1, 2, 70, 33}, {1, 2, 70, 5}},
     [](auto& in) {
       return nn::scaled_dot_product_attention(in[0], in[1], in[2], {}, {.is_causal = true, .scale = 0.3});
     },
     [](auto& in) { return torch::scaled_dot_product_attention(in[0], in[1], in[2], {}, 0.0, true, 0.3); }},
    {"AttentionWithABias",
     {{3, 49, 16}, {3, 9, 16}, {3, 9, 16}},
     [](auto& in) { return nn::scaled_dot_product_attention(in[0], in[1], in[2], kBias); },
     [](auto& in) { return torch::scaled_dot_product_attention(in[0], in[1], in[2], to_torch(kBias)); }},
    {"AttentionOfHeadsInsideQueries",
     {{2, 53, 96}},
     [](auto& in) {
       std::vector<Tensor> heads;
       for (const Tensor& part : chunk(in[0], 3, -1)) heads.push_back(part.view({2, 53, 4, 8}).transpose(1, 2));
       return nn::scaled_dot_product_attention(heads[0], heads[1], heads[2]).transpose(1, 2).reshape({2, 53, 32});
     },
     [](auto& in) {
       std::vector<torch::Tensor> heads;
       for (const auto& part : in[0].chunk(3, -1)) heads.push_back(part.view({2, 53, 4, 8}).transpose(1, 2));
       return torch::scaled_dot_product_attention(heads[0], heads[1], heads[2]).transpose(1, 2).reshape({2, 53, 32});
     }},
    {"LogSumExp",
     {{5, 300}},
     [](auto& in) { return logsumexp(in[0], {1}); },
     [](auto& in) { return torch::logsumexp(in[0], 1); }},
    {"Conv1d",
     {{2, 4, 11}, {6, 2, 3}, {6}},
     [](auto& in) { return nn::conv1d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .groups = 2}); },
     [](auto& in) { return torch::conv1d(in[0], in[1], in[2], 2, 1, 1, 2); }},
    {"ConvTranspose",
     {{2, 4, 5, 6}, {4, 3, 3, 3}, {6}},
     [](auto& in) {
       return nn::conv_transpose2d(in[0], in[1], in[2], {.stride = 2, .padding = 1, .output_padding = 1, .groups = 2});
     },
     [](auto& in) { return torch::conv_transpose2d(in[0], in[1], in[2], 2, 1, 1, 2); }},
    {"WideConv",
     {{2, 4, 6, 7}, {6, 2, 3, 3}, {6}},
     [](auto& in) {
       const auto wide = [](const Tensor& t) { return t.to(DType::kFloat64); };
       return nn::conv2d(wide(in[0]), wide(in[1]), wide(in[2]), {.stride = 2, .padding = 1, .groups = 2})
           .to(DType::kFloat32);
     },
     [](auto& in) { return torch::conv2d(in[0], in[1], in[2], 2, 1, 1, 2); }},
    {"AvgPoolPadded",
     {{2, 3, 7, 8}},
     [](auto& in) { return nn::avg_pool2d(in[0], 3, {.stride = 2, .padding = 1}); },
     [](auto& in) { return torch::avg_pool2d(in[0], 3, 2, 1); }},
};

const Operator kPools[] = {
    {"MaxCeil",
     {{2, 16, 8, 9}},
     [](auto& in) {
       return nn::max_pool2d(in[0], 3, {.stride = 2, .padding = {1, 0}, .ceil_mode = true});
     },
     [](auto& in) {
       return torch::max_pool2d(in[0], 3, 2, {1, 0}, 1, true);
     }},
    {"MaxDilatedCeil",
     {{2, 3, 8, 9}},
     [](auto& in) {
       return nn::max_pool2d(in[0], 2, {.stride = {3, 2}, .padding = 1, .dilation = {2, 3}, .ceil_mode = true});
     },
     [](auto& in) {
       return torch::max_pool2d(in[0], 2, {3, 2}, 1, {2, 3}, true);
     }},
    {"MaxAt",
     {{2, 3, 8, 9}},
     [](auto& in) { return nn::max_pool2d_with_indices(in[0], 3, {.stride = 2, .padding = 1}).values; },
     [](auto& in) { return torch::max_pool2d(in[0], 3, 2, 1); }},
    {"AvgCeil",
     {{2, 3, 8, 9}},
     [](auto& in) {
       return nn::avg_pool2d(in[0], 3, {.stride = 2, .padding = {1, 0}, .ceil_mode = true});
     },
     [](auto& in) {
       return torch::avg_pool2d(in[0], 3, 2, {1, 0}, true);
     }},
    {"AvgWithoutPadding",
     {{2, 3, 8, 9}},
     [](auto& in) { return nn::avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .count_include_pad = false}); },
     [](auto& in) { return torch::avg_pool2d(in[0], 3, 2, 1, false, false); }},
    {"AvgDivisor",
     {{2, 3, 8, 9}},
     [](auto& in) { return nn::avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .divisor_override = 5}); },
     [](auto& in) { return torch::avg_pool2d(in[0], 3, 2, 1, false, true, 5); }},
    {"AdaptiveMax",
     {{2, 3, 10, 11}},
     [](auto& in) {
       return nn::adaptive_max_pool2d(in[0], {3, 4}).values;
     },
     [](auto& in) {
       return std::get<0>(torch::adaptive_max_pool2d(in[0], {3, 4}));
     }},
    {"Max1d",
     {{2, 3, 11}},
     [](auto& in) { return nn::max_pool1d(in[0], 3, {.stride = 2, .dilation = 2, .ceil_mode = true}); },
     [](auto& in) { return torch::max_pool1d(in[0], 3, 2, 0, 2, true); }},
    {"Avg1d",
     {{3, 11}},
     [](auto& in) { return nn::avg_pool1d(in[0], 3, {.padding = 1}); },
     [](auto& in) { return torch::avg_pool1d(in[0], 3, 3, 1); }},
    {"Adaptive1d",
     {{2, 3, 11}},
     [](auto& in) { return nn::adaptive_avg_pool1d(in[0], 4) + nn::adaptive_max_pool1d(in[0], 4).values; },
     [](auto& in) { return torch::adaptive_avg_pool1d(in[0], 4) + std::get<0>(torch::adaptive_max_pool1d(in[0], 4)); }},
};

TEST(PoolTorchTest, TellsWhereTheLargestAre) {
  const Tensor x = round(spread_values({2, 3, 10, 11}) * 4.0);  // with equal ones
  const torch::Tensor theirs = to_torch(x);
  expect_close(nn::max_pool2d_with_indices(x, {3, 2}, {.stride = 2, .padding = 1, .dilation = {1, 2}}).indices,
               std::get<1>(torch::max_pool2d_with_indices(theirs, {3, 2}, 2, 1, {1, 2})), "max_pool2d");
  expect_close(nn::adaptive_max_pool2d(x, {3, 4}).indices, std::get<1>(torch::adaptive_max_pool2d(theirs, {3, 4})),
               "adaptive_max_pool2d");
  expect_close(nn::max_pool1d_with_indices(x.select(0, 0), 3).indices,
               std::get<1>(torch::max_pool1d_with_indices(theirs.select(0, 0), 3)), "max_pool1d");
}

INSTANTIATE_TEST_SUITE_P(Losses, LayersTorchTest, testing::ValuesIn(kLosses), kOperatorName);
INSTANTIATE_TEST_SUITE_P(Pools, LayersTorchTest, testing::ValuesIn(kPools), kOperatorName);
INSTANTIATE_TEST_SUITE_P(Layers, LayersTorchTest, testing::ValuesIn(kLayers), kOperatorName);

}  // namespace
}  // namespace infeed
