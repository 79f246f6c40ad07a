// Every operator, forward and backward, against LibTorch.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <ostream>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {
namespace {

namespace F = torch::nn::functional;
using Ours = std::function<Tensor(const std::vector<Tensor>&)>;
using Theirs = std::function<torch::Tensor(const std::vector<torch::Tensor>&)>;

struct Operator {
  std::string name;
  std::vector<Shape> shapes;
  Ours ours;
  Theirs theirs;
  friend void PrintTo(const Operator& op, std::ostream* out) { *out << op.name; }
};

torch::Tensor to_torch(const Tensor& tensor) {
  const Tensor plain = tensor.detach().contiguous();
  const bool labels = plain.dtype() == DType::kInt64;
  return torch::from_blob(plain.data_ptr(), plain.shape().span(), labels ? torch::kInt64 : torch::kFloat32).clone();
}

void expect_close(const Tensor& ours, const torch::Tensor& theirs, const std::string& what) {
  ASSERT_TRUE(ours.defined() && theirs.defined()) << what;
  ASSERT_EQ(ours.shape(), Shape(std::span(theirs.sizes().data(), theirs.sizes().size()))) << what;
  const torch::Tensor mine = to_torch(ours);
  EXPECT_TRUE(torch::allclose(mine, theirs.detach().to(mine.dtype()), 1e-4, 1e-5))
      << what << " differs by up to " << (mine - theirs).abs().max().item<double>();
}

struct OperatorsTorchTest : testing::TestWithParam<Operator> {
  OperatorsTorchTest() {
    for (const Shape& shape : GetParam().shapes) {
      ours.push_back(spread_values(shape, static_cast<std::int64_t>(ours.size())).set_requires_grad());
      theirs.push_back(to_torch(ours.back()).set_requires_grad(true));
    }
  }
  std::vector<Tensor> ours;
  std::vector<torch::Tensor> theirs;
};

TEST_P(OperatorsTorchTest, AgreesForwardAndBackward) {
  const Tensor y = GetParam().ours(ours);
  const torch::Tensor expected = GetParam().theirs(theirs);
  expect_close(y, expected, "output");
  const Tensor grad = spread_values(y.shape(), 17);
  y.backward(grad);
  expected.backward(to_torch(grad));
  for (std::size_t i = 0; i < ours.size(); ++i)
    expect_close(ours[i].grad(), theirs[i].grad(), "gradient of input " + std::to_string(i));
}

const Tensor kLabels = Tensor::from_values<std::int64_t>({2, 0, -100, 9, 1, 1});
const Tensor kAllLabels = Tensor::from_values<std::int64_t>({2, 0, 0, 9, 1, 1});
const torch::Tensor kTorchLabels = torch::tensor({2, 0, -100, 9, 1, 1}, torch::kInt64);
constexpr auto kLast = MemoryFormat::kChannelsLast;

const Operator kArithmetic[] = {
    {"Add", {{4, 1, 6}, {5, 6}}, [](auto& in) { return in[0] + in[1]; }, [](auto& in) { return in[0] + in[1]; }},
    {"Sub", {{4, 5}, {1}}, [](auto& in) { return in[0] - in[1]; }, [](auto& in) { return in[0] - in[1]; }},
    {"Mul", {{4, 5}, {4, 1}}, [](auto& in) { return in[0] * in[1]; }, [](auto& in) { return in[0] * in[1]; }},
    {"Div", {{4, 5}, {5}}, [](auto& in) { return in[0] / in[1]; }, [](auto& in) { return in[0] / in[1]; }},
    {"Scalars",
     {{7}},
     [](auto& in) { return 1.0 / (2.0 - in[0] * 0.5); },
     [](auto& in) { return 1.0 / (2.0 - in[0] * 0.5); }},
    {"Relu", {{300, 300}}, [](auto& in) { return relu(in[0]); }, [](auto& in) { return torch::relu(in[0]); }},
    {"Exp", {{50}}, [](auto& in) { return exp(in[0]); }, [](auto& in) { return torch::exp(in[0]); }},
    {"Log", {{50}}, [](auto& in) { return log(in[0] * in[0]); }, [](auto& in) { return torch::log(in[0] * in[0]); }},
    {"Sum", {{30, 40}}, [](auto& in) { return sum(in[0]); }, [](auto& in) { return in[0].sum(); }},
    {"SumDims",
     {{3, 4, 5, 6}},
     [](auto& in) {
       return sum(in[0], {0, 2});
     },
     [](auto& in) {
       return in[0].sum({0, 2});
     }},
    {"MeanKeepdim",
     {{3, 4, 5}},
     [](auto& in) { return mean(in[0], {1}, true); },
     [](auto& in) { return in[0].mean(1, true); }},
    {"Mean", {{100, 900}}, [](auto& in) { return mean(in[0]); }, [](auto& in) { return in[0].mean(); }},
    {"Max", {{20, 30}}, [](auto& in) { return max(in[0]); }, [](auto& in) { return in[0].max(); }},
    {"Views",
     {{4, 6, 5}},
     [](auto& in) {
       return in[0].transpose(0, 2).narrow(1, 2, 3).reshape({-1, 6}).select(0, 3);
     },
     [](auto& in) {
       return in[0].transpose(0, 2).narrow(1, 2, 3).reshape({-1, 6}).select(0, 3);
     }},
    {"Expand",
     {{4, 1}},
     [](auto& in) {
       return in[0].unsqueeze(0).expand({2, 4, 3}).flatten(1);
     },
     [](auto& in) {
       return in[0].unsqueeze(0).expand({2, 4, 3}).flatten(1);
     }},
    {"Matmul",
     {{33, 65}, {65, 17}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
    {"TransposedMatmul",
     {{65, 33}, {17, 65}},
     [](auto& in) { return matmul(in[0].t(), in[1].t()); },
     [](auto& in) { return in[0].t().matmul(in[1].t()); }},
    {"BatchedMatmul",
     {{3, 1, 4, 5}, {2, 5, 6}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
    {"FoldedMatmul",
     {{3, 4, 5}, {5, 6}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
    {"MatrixVector",
     {{4, 5}, {5}},
     [](auto& in) { return matmul(in[0], in[1]); },
     [](auto& in) { return in[0].matmul(in[1]); }},
};

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
       return nn::max_pool2d(in[0], {3, 2}, 2, {1, 0});
     },
     [](auto& in) {
       return torch::max_pool2d(in[0], {3, 2}, {2, 2}, {1, 0});
     }},
    {"AvgPool",
     {{3, 5, 10, 11}},
     [](auto& in) { return nn::avg_pool2d(in[0], 3, 2); },
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

const auto kName = [](const auto& test) { return test.param.name; };
INSTANTIATE_TEST_SUITE_P(Arithmetic, OperatorsTorchTest, testing::ValuesIn(kArithmetic), kName);
INSTANTIATE_TEST_SUITE_P(Layers, OperatorsTorchTest, testing::ValuesIn(kLayers), kName);

}  // namespace
}  // namespace infeed
