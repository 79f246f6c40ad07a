// Every operator's backward against the slope of its forward.
#include <gtest/gtest.h>

#include <functional>
#include <ostream>

#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {
namespace {

using Inputs = std::vector<Tensor>;

struct Operator {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Inputs&)> forward;
  friend void PrintTo(const Operator& op, std::ostream* out) { *out << op.name; }
};

struct GradientTest : testing::TestWithParam<Operator> {
  // The output weighed by fixed values, so that every element counts differently.
  static Tensor loss(const Inputs& inputs) {
    const Tensor y = GetParam().forward(inputs);
    return sum(y * spread_values(y.shape(), 5));
  }

  static double slope(Inputs& inputs, std::size_t which, std::int64_t i) {
    const NoGradGuard no_grad;
    float& value = inputs[which].data<float>()[i];
    const float middle = value;
    value = middle + 0.01f;
    const double above = loss(inputs).item();
    value = middle - 0.01f;
    const double below = loss(inputs).item();
    value = middle;
    return (above - below) / 0.02;
  }
};

TEST_P(GradientTest, IsTheSlope) {
  Inputs inputs;
  for (const Shape& shape : GetParam().shapes)
    inputs.push_back(spread_values(shape, static_cast<std::int64_t>(inputs.size())).set_requires_grad());
  loss(inputs).backward();
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> grad = values_of(inputs[k].grad());
    for (std::size_t i = 0; i < grad.size(); ++i)
      ASSERT_NEAR(grad[i], slope(inputs, k, static_cast<std::int64_t>(i)), 0.01 + 0.02 * std::abs(grad[i]))
          << "input " << k << " element " << i;
  }
}

const Tensor kLabels = Tensor::from_values<std::int64_t>({2, 0, -100});

const Operator kOperators[] = {
    {"Add", {{2, 3}, {3}}, [](const Inputs& in) { return in[0] + in[1]; }},
    {"Sub", {{2, 1}, {3}}, [](const Inputs& in) { return in[0] - in[1]; }},
    {"Mul", {{2, 3}, {2, 1}}, [](const Inputs& in) { return in[0] * in[1]; }},
    {"Div", {{2, 3}, {3}}, [](const Inputs& in) { return in[0] / (in[1] + 3.0); }},
    {"ScalarDiv", {{4}}, [](const Inputs& in) { return 2.0 / (in[0] + 3.0); }},
    {"Relu", {{10}}, [](const Inputs& in) { return relu(in[0]); }},
    {"Exp", {{5}}, [](const Inputs& in) { return exp(in[0]); }},
    {"Log", {{5}}, [](const Inputs& in) { return log(in[0] + 2.0); }},
    {"SumDim",
     {{2, 3, 4}},
     [](const Inputs& in) {
       return sum(in[0], {0, 2});
     }},
    {"Mean", {{2, 3}}, [](const Inputs& in) { return mean(in[0], {1}, true); }},
    {"Max", {{7}}, [](const Inputs& in) { return max(in[0]); }},
    {"Views",
     {{2, 3, 4}},
     [](const Inputs& in) {
       return in[0].permute({2, 0, 1}).narrow(0, 1, 2).reshape({4, 3}).select(1, 2);
     }},
    {"Matmul", {{2, 3}, {3, 4}}, [](const Inputs& in) { return matmul(in[0], in[1]); }},
    {"BatchedMatmul", {{2, 1, 2, 3}, {2, 3, 2}}, [](const Inputs& in) { return matmul(in[0], in[1]); }},
    {"VectorMatmul", {{3}, {3, 2}}, [](const Inputs& in) { return matmul(in[0], in[1]); }},
    {"Linear", {{2, 3}, {4, 3}, {4}}, [](const Inputs& in) { return nn::linear(in[0], in[1], in[2]); }},
    {"Conv",
     {{2, 2, 5, 4}, {3, 2, 3, 3}, {3}},
     [](const Inputs& in) {
       return nn::conv2d(in[0], in[1], in[2], {.stride = {2, 1}, .padding = 1});
     }},
    {"GroupedConv",
     {{1, 4, 5, 5}, {4, 2, 2, 2}, {4}},
     [](const Inputs& in) { return nn::conv2d(in[0], in[1], in[2], {.dilation = 2, .groups = 2}); }},
    {"BatchNorm",
     {{3, 2, 3, 3}, {2}, {2}},
     [](const Inputs& in) { return nn::batch_norm(in[0], {}, {}, in[1], in[2], {.training = true}); }},
    {"MaxPool", {{1, 2, 5, 5}}, [](const Inputs& in) { return nn::max_pool2d(in[0], 3, {.stride = 2, .padding = 1}); }},
    {"AdaptivePool",
     {{1, 2, 5, 7}},
     [](const Inputs& in) {
       return nn::adaptive_avg_pool2d(in[0], {2, 3});
     }},
    {"GlobalPool", {{2, 3, 4, 4}}, [](const Inputs& in) { return nn::adaptive_avg_pool2d(in[0], 1); }},
    {"Softmax", {{2, 3, 4}}, [](const Inputs& in) { return nn::softmax(in[0], 1); }},
    {"LogSoftmax", {{2, 5}}, [](const Inputs& in) { return nn::log_softmax(in[0], -1); }},
    {"CrossEntropy",
     {{3, 4}},
     [](const Inputs& in) { return nn::cross_entropy(in[0], kLabels, {.label_smoothing = 0.1}); }},
};

INSTANTIATE_TEST_SUITE_P(Operators, GradientTest, testing::ValuesIn(kOperators),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace infeed
