// The host twins of CUDA's kernels beside LibTorch's operators; kernels_list.h holds them, and the GPU, against the companion's.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "cuda/dense_loop.h"
#include "device/kernels/twins.h"

namespace infeed::device {
namespace {

at::Tensor uniform(at::IntArrayRef shape, double from, double to) { return at::empty(shape).uniform_(from, to); }
const float* in(const at::Tensor& x) { return x.const_data_ptr<float>(); }

/// What kernel(out) writes.
template <class Kernel>
at::Tensor made(at::IntArrayRef shape, const Kernel& kernel) {
  at::Tensor out = at::full(shape, -77.0);
  kernel(out.mutable_data_ptr<float>());
  return out;
}

void expect_close(const at::Tensor& got, const at::Tensor& expected, double tolerance = 2e-6) {
  EXPECT_TRUE(at::allclose(got, expected, tolerance, tolerance, true))
      << "differs by up to " << (got - expected).abs().max().item<double>();
}

at::Tensor twin(UnaryOp op, const at::Tensor& x) {
  return made(x.sizes(), [&](float* y) { unary(Host{}, code(op), dense_loop(x.numel(), y, {in(x)})); });
}
at::Tensor twin(BinaryOp op, const at::Tensor& a, const at::Tensor& b) {
  return made(a.sizes(), [&](float* y) { binary(Host{}, code(op), dense_loop(a.numel(), y, {in(a), in(b)})); });
}
infeed_rows rows_of(const at::Tensor& x) { return {x.size(0), x.size(1)}; }

TEST(KernelsTorchTest, FunctionsOfOneTensor) {
  const at::Tensor x = uniform({700}, -4, 4), positive = uniform({700}, 0.01, 9);
  expect_close(twin(UnaryOp::kNeg, x), at::neg(x), 0);
  expect_close(twin(UnaryOp::kAbs, x), at::abs(x), 0);
  expect_close(twin(UnaryOp::kExp, x), at::exp(x));
  expect_close(twin(UnaryOp::kLog, positive), at::log(positive));
  expect_close(twin(UnaryOp::kSqrt, positive), at::sqrt(positive));
  expect_close(twin(UnaryOp::kRelu, x), at::relu(x), 0);
  expect_close(twin(UnaryOp::kSigmoid, x), at::sigmoid(x));
  expect_close(twin(UnaryOp::kTanh, x), at::tanh(x));
  expect_close(twin(UnaryOp::kGelu, x), at::gelu(x));
}

TEST(KernelsTorchTest, FunctionsOfTwoTensors) {
  const at::Tensor a = uniform({513}, -2, 2), b = uniform({513}, 0.5, 1.5), y = at::relu(uniform({513}, -1, 1));
  expect_close(twin(BinaryOp::kAdd, a, b), a + b, 0);
  expect_close(twin(BinaryOp::kSub, a, b), a - b, 0);
  expect_close(twin(BinaryOp::kMul, a, b), a * b, 0);
  expect_close(twin(BinaryOp::kDiv, a, b), a / b, 0);
  expect_close(twin(BinaryOp::kMax, a, b), at::maximum(a, b), 0);
  expect_close(twin(BinaryOp::kReluGrad, a, y), at::threshold_backward(a, y, 0), 0);
  expect_close(twin(BinaryOp::kSigmoidGrad, a, b), at::sigmoid_backward(a, b));
  expect_close(twin(BinaryOp::kTanhGrad, a, b), at::tanh_backward(a, b));
}

TEST(KernelsTorchTest, WhatIsNoNumberStaysOne) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const at::Tensor x = at::tensor({std::nanf(""), kInfinity, -kInfinity, 0.0F, -0.0F}), turned = at::flip(x, 0);
  for (const auto& [op, expected] :
       {std::pair{UnaryOp::kExp, at::exp(x)}, std::pair{UnaryOp::kLog, at::log(x)},
        std::pair{UnaryOp::kRelu, at::relu(x)}, std::pair{UnaryOp::kSigmoid, at::sigmoid(x)},
        std::pair{UnaryOp::kTanh, at::tanh(x)}})  // LibTorch's gelu() of infinity is NaN
    expect_close(twin(op, x), expected);
  expect_close(twin(BinaryOp::kMax, x, turned), at::maximum(x, turned), 0);
  expect_close(twin(BinaryOp::kDiv, x, turned), x / turned, 0);
}

TEST(KernelsTorchTest, Pixels) {
  const infeed_images shape{.n = 2, .h = 5, .w = 7, .c = 3};
  const at::Tensor pixels = at::randint(0, 256, {2, 5, 7, 3}, at::kByte), mean = at::tensor({0.485F, 0.456F, 0.406F}),
                   std = at::tensor({0.229F, 0.224F, 0.225F});
  const infeed_normalization numbers{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const at::Tensor planes = made({2, 3, 5, 7}, [&](float* out) {
    normalize_to_nchw(Host{}, pixels.const_data_ptr<std::uint8_t>(), out, shape, numbers);
  });
  expect_close(planes, ((pixels.to(at::kFloat) / 255 - mean) / std).permute({0, 3, 1, 2}));
}

class KernelsOfRowsTorchTest : public ::testing::TestWithParam<std::pair<int, int>> {
 protected:
  at::Tensor x = uniform({GetParam().first, GetParam().second}, -9, 9);
};
// Rows shorter and longer than the lanes that share one.
INSTANTIATE_TEST_SUITE_P(Shapes, KernelsOfRowsTorchTest,
                         ::testing::Values(std::pair{1, 1}, std::pair{4, 256}, std::pair{2, 257}, std::pair{5, 1000}));

TEST_P(KernelsOfRowsTorchTest, Reductions) {
  const auto twin_of = [&](std::int32_t op) {
    return made({x.size(0)}, [&](float* y) { reduce_rows(Host{}, op, in(x), y, rows_of(x)); });
  };
  expect_close(twin_of(INFEED_REDUCE_SUM), at::sum(x, 1), 1e-5);
  expect_close(twin_of(INFEED_REDUCE_MEAN), at::mean(x, 1), 1e-5);
  expect_close(twin_of(INFEED_REDUCE_MAX), at::amax(x, 1), 0);
  expect_close(twin_of(INFEED_REDUCE_MIN), at::amin(x, 1), 0);
  expect_close(made({x.size(1)}, [&](float* y) { sum_columns(Host{}, in(x), y, rows_of(x)); }), at::sum(x, 0), 1e-5);
}

TEST_P(KernelsOfRowsTorchTest, SoftmaxAndItsGradients) {
  const infeed_rows shape = rows_of(x);
  const at::Tensor y = at::softmax(x, 1), log_y = at::log_softmax(x, 1), g = uniform(x.sizes(), -1, 1);
  expect_close(made(x.sizes(), [&](float* to) { softmax(Host{}, in(x), to, shape); }), y);
  expect_close(made(x.sizes(), [&](float* to) { log_softmax(Host{}, in(x), to, shape); }), log_y);
  expect_close(made(x.sizes(), [&](float* to) { softmax_backward(Host{}, in(g), in(y), to, shape); }),
               at::_softmax_backward_data(g, y, 1, at::kFloat));
  expect_close(made(x.sizes(), [&](float* to) { log_softmax_backward(Host{}, in(g), in(log_y), to, shape); }),
               at::_log_softmax_backward_data(g, log_y, 1, at::kFloat), 1e-5);
}

TEST(KernelsTorchTest, StepsOfSGD) {
  for (const bool nesterov : {false, true}) {
    const at::Tensor theirs = uniform({300}, -1, 1), their_buffer = at::zeros({300});
    const at::Tensor ours = theirs.clone(), buffer = at::zeros({300});
    for (int step = 0; step < 3; ++step) {
      const at::Tensor g = uniform({300}, -1, 1);
      at::_fused_sgd_({theirs}, {g}, {their_buffer}, 0.1, 0.9, 0.05, nesterov ? 0.0 : 0.2, nesterov, false, step == 0);
      const infeed_sgd numbers{0.05F, 0.9F, nesterov ? 0.0F : 0.2F, 0.1F, nesterov ? 1 : 0, 0, step == 0 ? 1 : 0};
      sgd_step(Host{}, numbers, ours.mutable_data_ptr<float>(), in(g), buffer.mutable_data_ptr<float>(), 300);
    }
    expect_close(ours, theirs, 1e-5);
  }
}

TEST(KernelsTorchTest, StepsOfAdam) {
  const at::Tensor theirs = uniform({300}, -1, 1), their_m = at::zeros({300}), their_v = at::zeros({300}),
                   count = at::zeros({}), ours = theirs.clone(), m = at::zeros({300}), v = at::zeros({300});
  for (int step = 1; step <= 3; ++step) {
    const at::Tensor g = uniform({300}, -1, 1);
    count.add_(1);
    at::_fused_adamw_({theirs}, {g}, {their_m}, {their_v}, {}, {count}, 0.01, 0.9, 0.999, 0.1, 1e-8, false, false);
    const infeed_adam numbers{.lr = 0.01F,
                              .beta1 = 0.9F,
                              .beta2 = 0.999F,
                              .eps = 1e-8F,
                              .weight_decay = 0.1F,
                              .decoupled = 1,
                              .correction1 = static_cast<float>(1 - std::pow(0.9, step)),
                              .root_correction2 = static_cast<float>(std::sqrt(1 - std::pow(0.999, step)))};
    adam_step(Host{}, numbers, ours.mutable_data_ptr<float>(), in(g), m.mutable_data_ptr<float>(),
              v.mutable_data_ptr<float>(), nullptr, 300);
  }
  expect_close(ours, theirs, 1e-5);
}

TEST(KernelsTorchTest, ProductsOfMatrices) {
  const at::Tensor a = uniform({33, 45}, -1, 1), b = uniform({45, 70}, -1, 1);
  const at::Tensor a_t = a.t().contiguous(), b_t = b.t().contiguous(), expected = at::mm(a, b);
  for (int stored = 0; stored < 4; ++stored) {
    const infeed_matmul shape{33, 70, 45, stored & 1, (stored >> 1) & 1};
    const float* left = in(shape.a_transposed != 0 ? a_t : a);
    const float* right = in(shape.b_transposed != 0 ? b_t : b);
    expect_close(made({33, 70}, [&](float* c) { matmul(Host{}, left, right, c, shape); }), expected, 1e-5);
  }
}

TEST(KernelsTorchTest, ConvolutionsAndTheirGradients) {
  const infeed_convolution s{.n = 2,
                             .c = 4,
                             .h = 7,
                             .w = 11,
                             .o = 6,
                             .kh = 3,
                             .kw = 2,
                             .stride = {2, 3},
                             .padding = {2, 1},
                             .dilation = {1, 2},
                             .groups = 2,
                             .out_h = 5,
                             .out_w = 4};
  const at::Tensor x = uniform({2, 4, 7, 11}, -1, 1), w = uniform({6, 2, 3, 2}, -1, 1), b = uniform({6}, -1, 1);
  const at::Tensor y = at::conv2d(x, w, b, {2, 3}, {2, 1}, {1, 2}, 2), g = uniform(y.sizes(), -1, 1);
  const auto [dx, dw, db] = at::convolution_backward(g, x, w, at::OptionalIntArrayRef({6}), {2, 3}, {2, 1}, {1, 2},
                                                     false, {0, 0}, 2, {true, true, true});
  expect_close(made(y.sizes(), [&](float* to) { conv2d(Host{}, in(x), in(w), in(b), to, s); }), y, 1e-5);
  expect_close(made(x.sizes(), [&](float* to) { conv2d_backward_input(Host{}, in(g), in(w), to, s); }), dx, 1e-5);
  expect_close(made(w.sizes(), [&](float* to) { conv2d_backward_weight(Host{}, in(g), in(x), to, s); }), dw, 2e-5);
}

}  // namespace
}  // namespace infeed::device
