// Functions of one's own, and derivatives of every order against differences.
#include "infeed/train/autograd/function.h"

#include <gtest/gtest.h>

#include <ostream>

#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed {
namespace {

using Tensors = std::vector<Tensor>;

struct Cube : Function<Cube> {
  static constexpr std::string_view kName = "Cube";
  static Tensors forward(FunctionContext& context, const Tensors& in) {
    context.save_for_backward({in[0]});
    return {in[0] * in[0] * in[0]};
  }
  static Tensors backward(FunctionContext& context, const Tensors& g) {
    const Tensor x = context.saved_tensors()[0];
    return {g[0] * 3.0 * x * x};
  }
};

struct Two : Function<Two> {
  static constexpr std::string_view kName = "Two";
  static Tensors forward(FunctionContext&, const Tensors& in) { return {in[0] * 2.0}; }
  static Tensors backward(FunctionContext&, const Tensors& g) { return {g[0], g[0]}; }
};

struct FunctionTest : testing::Test {
  Tensor x = Tensor::from_values({1.0, 2.0}).set_requires_grad();
};

TEST_F(FunctionTest, RunsItsOwnBackward) {
  const Tensor y = Cube::apply({x})[0];
  EXPECT_EQ(y.grad_fn()->name(), "CubeBackward");
  sum(y * 2.0).backward();
  EXPECT_EQ(values_of(x.grad()), (std::vector<double>{6, 24}));
  EXPECT_THROW(sum(y).backward(), RuntimeError);
}

TEST_F(FunctionTest, CanBeDifferentiatedTwice) {
  EXPECT_TRUE(gradgradcheck([](const Tensors& in) { return Cube::apply(in); }, {x}));
}

TEST_F(FunctionTest, RecordsNothingUnderNoGrad) {
  const NoGradGuard no_grad;
  EXPECT_EQ(Cube::apply({x})[0].grad_fn(), nullptr);
}

TEST_F(FunctionTest, CountsTheGradientsItReturns) {
  try {
    sum(Two::apply({x})[0]).backward();
    FAIL() << "no error";
  } catch (const RuntimeError& error) {
    EXPECT_STREQ(error.what(), "function TwoBackward returned an incorrect number of gradients (expected 1, got 2)");
  }
}

TEST_F(FunctionTest, FindsAWrongGradient) {
  const auto wrong = [](const Tensors& in) { return Tensors{in[0] * in[0].detach()}; };
  EXPECT_NE(gradcheck_failure(wrong, {x}).find("Jacobian mismatch for output 0 with respect to input 0"),
            std::string::npos);
}

struct Operation {
  std::string name;
  std::vector<Shape> shapes;
  std::function<Tensor(const Tensors&)> run;
  double shift = 0.0;
  friend void PrintTo(const Operation& op, std::ostream* out) { *out << op.name; }
};

struct SecondOrderTest : testing::TestWithParam<Operation> {};

TEST_P(SecondOrderTest, MatchesDifferences) {
  Tensors inputs;
  for (const Shape& shape : GetParam().shapes) {
    const Tensor values =
        spread_values(shape, static_cast<std::int64_t>(inputs.size())).to(DType::kFloat64) + GetParam().shift;
    inputs.push_back(values.detach().set_requires_grad());
  }
  const auto f = [&](const Tensors& in) { return Tensors{GetParam().run(in)}; };
  EXPECT_TRUE(gradcheck(f, inputs));
  EXPECT_TRUE(gradgradcheck(f, inputs));
}

const Operation kOperations[] = {
    {"Arithmetic", {{2, 3}, {3}}, [](auto& in) { return in[0] * in[1] / (in[1] + 3.0) - pow(in[0], 3); }},
    {"Pow", {{4}, {4}}, [](auto& in) { return pow(in[0], in[1]); }, 2.0},
    {"Functions",
     {{5}},
     [](auto& in) { return exp(in[0]) * sin(in[0]) + tanh(in[0]) * sigmoid(in[0]) + log(in[0] + 2.0); }},
    {"Roots", {{5}}, [](auto& in) { return sqrt(in[0]) + rsqrt(in[0]) + reciprocal(in[0]); }, 2.0},
    {"Activations",
     {{6}},
     [](auto& in) { return gelu(in[0]) + silu(in[0]) + gelu(in[0], GeluKind::kTanh) + elu(in[0]) + relu(in[0]); }},
    {"Reductions",
     {{3, 4}},
     [](auto& in) { return var(in[0], {1}) + logsumexp(in[0], {1}) + norm(in[0], 2.0, {1}) + prod(in[0], 1); }},
    {"Cumprod", {{3, 4}}, [](auto& in) { return cumprod(in[0] * in[0], 1); }},
    {"Std", {{3, 4}}, [](auto& in) { return std(in[0], {0}) + mean(in[0] * in[0], {0}); }},
    {"Softmax", {{3, 4}}, [](auto& in) { return nn::softmax(in[0], 1) * nn::log_softmax(in[0], 0); }},
    {"Matmul", {{2, 3}, {3, 4}, {4}}, [](auto& in) { return matmul(matmul(in[0], in[1]), in[2]); }},
    {"Batched", {{2, 2, 3}, {3, 2}}, [](auto& in) { return matmul(in[0], in[1]); }},
    {"Linear", {{2, 3}, {4, 3}, {4}}, [](auto& in) { return nn::linear(in[0], in[1], in[2]); }},
    {"Moves",
     {{3, 4}},
     [](auto& in) {
       return cat({flip(in[0], {1}).t(), cumsum(in[0], 0).t()}, 1).unfold(1, 2, 1) * 2.0;
     }},
    {"Indexing",
     {{3, 4}},
     [](auto& in) {
       const Tensor at = Tensor::from_values<std::int64_t>({2, 0, 2});
       return square(in[0].index({at, Slice{1, {}, 2}})) + gather(in[0], 0, at.view({1, 3})).select(0, 0).unsqueeze(1);
     }},
    {"Assignment",
     {{3, 4}, {4}},
     [](auto& in) {
       Tensor y = in[0] * in[0];
       y.index_put({std::int64_t{1}}, in[1] * in[1]);
       y.select(1, 0).mul_(in[0].select(1, 1));
       return y;
     }},
    {"Conv",
     {{1, 2, 4, 5}, {4, 1, 2, 2}, {4}},
     [](auto& in) {
       return nn::conv2d(in[0], in[1], in[2], {.stride = {1, 2}, .padding = 1, .groups = 2});
     }},
    {"ConvTranspose",
     {{1, 2, 3, 2}, {2, 2, 2, 2}},
     [](auto& in) { return nn::conv_transpose2d(in[0], in[1], {}, {.stride = 2}); }},
    {"Norms",
     {{2, 4, 3}, {4}, {4}},
     [](auto& in) {
       return nn::group_norm(in[0], 2, in[1], in[2]) + nn::batch_norm(in[0], {}, {}, in[1], in[2], {.training = true});
     }},
    {"LayerNorm", {{2, 5}, {5}, {5}}, [](auto& in) { return nn::layer_norm(in[0], {5}, in[1], in[2]); }},
    {"Losses",
     {{3, 4}, {3, 4}},
     [](auto& in) {
       return nn::cross_entropy(in[0], Tensor::from_values<std::int64_t>({1, 3, 0}), {.label_smoothing = 0.1}) +
              nn::mse_loss(in[0], in[1]) + nn::smooth_l1_loss(in[0], in[1]) +
              nn::binary_cross_entropy_with_logits(in[0], sigmoid(in[1]));
     }},
    {"Attention",
     {{2, 3, 4}, {2, 3, 4}, {2, 3, 4}},
     [](auto& in) { return nn::scaled_dot_product_attention(in[0], in[1], in[2], {}, {.is_causal = true}); }},
    {"Pool",
     {{1, 2, 4, 5}},
     [](auto& in) {
       return nn::avg_pool2d(in[0], 3, {.stride = 2, .padding = 1, .ceil_mode = true}) *
              nn::adaptive_max_pool2d(in[0], 3).values;
     }},
};

INSTANTIATE_TEST_SUITE_P(Operations, SecondOrderTest, testing::ValuesIn(kOperations),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace infeed
