#pragma once
/// What every place of src/device/kernels must compute: what the companion computes on the CPU. A place says by Place<Where>
/// how bytes get there.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cuda/dense_loop.h"
#include "device/kernels/kernels.h"
#include "infeed/device/operations.h"
#include "infeed/train/train.h"
#include "train/values.h"

namespace infeed::device {

using kernels::BinaryOp;
using kernels::UnaryOp;

template <class Where>
struct Place;  ///< static is_there(), upload(host, bytes), download(host, there, bytes), release(there)

inline void expect_close(const Tensor& got, const Tensor& expected, double tolerance = 2e-6) {
  const std::vector<double> a = values_of(got), b = values_of(expected);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(b[i]) || std::isinf(b[i]))
      ASSERT_EQ(std::to_string(a[i]), std::to_string(b[i])) << "element " << i;
    else
      ASSERT_NEAR(a[i], b[i], tolerance * std::max(1.0, std::fabs(b[i]))) << "element " << i;
  }
}

template <class Where>
class KernelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!Place<Where>::is_there()) GTEST_SKIP() << "there is no GPU";
  }
  void TearDown() override {
    for (void* memory : placed_) Place<Where>::release(memory);
  }

  /// x's bytes at the place, until the test's end.
  template <class T = float>
  T* put(const Tensor& x) {
    const Tensor dense = x.detach().contiguous();
    placed_.push_back(Place<Where>::upload(dense.data_ptr(), static_cast<std::size_t>(dense.numel()) * sizeof(T)));
    return static_cast<T*>(placed_.back());
  }
  Tensor get(const float* there, const Shape& shape) {
    Tensor x = Tensor::empty(shape);
    Place<Where>::download(x.data_ptr(), there, static_cast<std::size_t>(x.numel()) * sizeof(float));
    return x;
  }
  /// What kernel(out) writes.
  template <class Kernel>
  Tensor made(const Shape& shape, Kernel kernel) {
    float* out = put(Tensor::full(shape, -77.0));
    kernel(out);
    return get(out, shape);
  }

  Where where;

 private:
  std::vector<void*> placed_;
};

TYPED_TEST_SUITE_P(KernelsTest);

TYPED_TEST_P(KernelsTest, FunctionsOfOneTensorAreTheCompanions) {
  const Shape shape{700};
  const Tensor x = Tensor::uniform(shape, -4, 4), positive = Tensor::uniform(shape, 0.01, 9);
  const auto of = [&](UnaryOp op, const Tensor& in) {
    return this->made(shape,
                      [&](float* y) { unary(this->where, code(op), dense_loop(in.numel(), y, {this->put(in)})); });
  };
  expect_close(of(UnaryOp::kNeg, x), neg(x));
  expect_close(of(UnaryOp::kAbs, x), abs(x));
  expect_close(of(UnaryOp::kExp, x), exp(x));
  expect_close(of(UnaryOp::kLog, positive), log(positive));
  expect_close(of(UnaryOp::kSqrt, positive), sqrt(positive));
  expect_close(of(UnaryOp::kRelu, x), relu(x));
  expect_close(of(UnaryOp::kSigmoid, x), sigmoid(x));
  expect_close(of(UnaryOp::kTanh, x), tanh(x));
  expect_close(of(UnaryOp::kGelu, x), gelu(x));
}

TYPED_TEST_P(KernelsTest, FunctionsOfTwoTensorsAreTheCompanions) {
  const Shape shape{513};
  const Tensor a = Tensor::uniform(shape, -2, 2), b = Tensor::uniform(shape, 0.5, 1.5);
  const auto of = [&](BinaryOp op) {
    return this->made(shape, [&](float* y) {
      binary(this->where, code(op), dense_loop(a.numel(), y, {this->put(a), this->put(b)}));
    });
  };
  expect_close(of(BinaryOp::kAdd), a + b);
  expect_close(of(BinaryOp::kSub), a - b);
  expect_close(of(BinaryOp::kMul), a * b);
  expect_close(of(BinaryOp::kDiv), a / b);
  expect_close(of(BinaryOp::kMax), maximum(a, b));
  expect_close(of(BinaryOp::kSigmoidGrad), a * b * (1.0 - b));
  expect_close(of(BinaryOp::kTanhGrad), a * (1.0 - b * b));
}

TYPED_TEST_P(KernelsTest, GradientsPassWhereReluDid) {
  const Tensor g = Tensor::uniform({64}, -1, 1), y = relu(Tensor::uniform({64}, -1, 1));
  const Tensor out = this->made({64}, [&](float* to) {
    binary(this->where, code(BinaryOp::kReluGrad), dense_loop(64, to, {this->put(g), this->put(y)}));
  });
  expect_close(out, g * gt(y, 0.0).to(DType::kFloat32));
}

TYPED_TEST_P(KernelsTest, AnOutputMayBeTheInput) {
  const Tensor x = Tensor::uniform({100}, -1, 1);
  float* there = this->put(x);
  unary(this->where, code(UnaryOp::kAffine), dense_loop(100, there, {there}, 2.0, -1.0));
  expect_close(this->get(there, {100}), x * 2.0 - 1.0);
}

TYPED_TEST_P(KernelsTest, PixelsBecomeNormalizedPlanesInOnePass) {
  const infeed_images shape{.n = 2, .h = 5, .w = 7, .c = 3};
  const Tensor pixels = randint(0, 256, {2, 5, 7, 3}).to(DType::kUInt8);
  const infeed_normalization numbers{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
  const Tensor got = this->made({2, 3, 5, 7}, [&](float* out) {
    normalize_to_nchw(this->where, this->template put<std::uint8_t>(pixels), out, shape, numbers);
  });
  const Tensor mean = Tensor::from_values({0.485F, 0.456F, 0.406F}, {3}),
               std = Tensor::from_values({0.229F, 0.224F, 0.225F}, {3});
  expect_close(got, ((pixels.to(DType::kFloat32) / 255.0 - mean) / std).permute({0, 3, 1, 2}));
}

// Rows shorter and longer than the lanes that share one.
inline std::vector<infeed_rows> row_shapes() { return {{1, 1}, {3, 5}, {4, 256}, {2, 257}, {5, 1000}}; }

TYPED_TEST_P(KernelsTest, RowsAreReduced) {
  for (const infeed_rows& shape : row_shapes()) {
    const Tensor x = Tensor::uniform({shape.rows, shape.columns}, -1, 1);
    const auto of = [&](std::int32_t op) {
      return this->made({shape.rows}, [&](float* y) { reduce_rows(this->where, op, this->put(x), y, shape); });
    };
    expect_close(of(INFEED_REDUCE_SUM), sum(x, {1}), 1e-5);
    expect_close(of(INFEED_REDUCE_MEAN), mean(x, {1}));
    expect_close(of(INFEED_REDUCE_MAX), amax(x, {1}), 0);
    expect_close(of(INFEED_REDUCE_MIN), amin(x, {1}), 0);
  }
}

TYPED_TEST_P(KernelsTest, NaNIsExtreme) {
  Tensor x = Tensor::zeros({2, 300});
  x.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  for (const std::int32_t op : {INFEED_REDUCE_MAX, INFEED_REDUCE_MIN}) {
    const Tensor got = this->made({2}, [&](float* y) { reduce_rows(this->where, op, this->put(x), y, {2, 300}); });
    EXPECT_TRUE(std::isnan(got.data<float>()[0]));
    EXPECT_EQ(got.data<float>()[1], 0.0F);
  }
}

TYPED_TEST_P(KernelsTest, ColumnsAreSummed) {
  for (const infeed_rows& shape : row_shapes()) {
    const Tensor x = Tensor::uniform({shape.rows, shape.columns}, -1, 1);
    expect_close(this->made({shape.columns}, [&](float* y) { sum_columns(this->where, this->put(x), y, shape); }),
                 sum(x, {0}), 1e-5);
  }
}

TYPED_TEST_P(KernelsTest, SoftmaxIsTheCompanionsAlsoOfLargeValues) {
  for (const infeed_rows& shape : row_shapes()) {
    const Tensor x = Tensor::uniform({shape.rows, shape.columns}, 990, 1000);
    const auto of = [&](auto kernel) {
      return this->made(x.shape(), [&](float* y) { kernel(this->where, this->put(x), y, shape); });
    };
    expect_close(of(softmax<TypeParam>), nn::softmax(x, 1));
    expect_close(of(log_softmax<TypeParam>), nn::log_softmax(x, 1));
  }
}

TYPED_TEST_P(KernelsTest, GradientsOfSoftmaxAreTheCompanions) {
  const infeed_rows shape{4, 300};
  const Tensor g = Tensor::uniform({4, 300}, -1, 1);
  Tensor x = Tensor::uniform({4, 300}, -3, 3).set_requires_grad();
  const auto check = [&](auto kernel, const Tensor& y) {
    x.set_grad(Tensor());
    y.backward(g);
    expect_close(this->made({4, 300}, [&](float* out) { kernel(this->where, this->put(g), this->put(y), out, shape); }),
                 x.grad(), 1e-5);
  };
  check(softmax_backward<TypeParam>, nn::softmax(x, 1));
  check(log_softmax_backward<TypeParam>, nn::log_softmax(x, 1));
}

TYPED_TEST_P(KernelsTest, StepsOfSGDAreTheCompanions) {
  for (const optim::SGDOptions& o :
       {optim::SGDOptions{.lr = 0.1}, optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.2, .maximize = true},
        optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}}) {
    Tensor p = Tensor::uniform({300}, -1, 1).set_requires_grad();
    optim::SGD sgd({p}, o);
    float *there = this->put(p), *buffer = this->put(Tensor::zeros({300}));
    for (int step = 0; step < 3; ++step) {
      p.set_grad(Tensor::uniform({300}, -1, 1));
      sgd.step();
      const infeed_sgd numbers{static_cast<float>(o.lr),
                               static_cast<float>(o.momentum),
                               static_cast<float>(o.dampening),
                               static_cast<float>(o.weight_decay),
                               o.nesterov ? 1 : 0,
                               o.maximize ? 1 : 0,
                               step == 0 ? 1 : 0};
      sgd_step(this->where, numbers, there, this->put(p.grad()), buffer, 300);
    }
    expect_close(this->get(there, {300}), p);
  }
}

inline infeed_adam numbers_of(const optim::AdamOptions& o, int step) {
  return {.lr = static_cast<float>(o.lr),
          .beta1 = static_cast<float>(o.beta1),
          .beta2 = static_cast<float>(o.beta2),
          .eps = static_cast<float>(o.eps),
          .weight_decay = static_cast<float>(o.weight_decay),
          .decoupled = o.decoupled ? 1 : 0,
          .maximize = o.maximize ? 1 : 0,
          .correction1 = static_cast<float>(1.0 - std::pow(o.beta1, step)),
          .root_correction2 = static_cast<float>(std::sqrt(1.0 - std::pow(o.beta2, step)))};
}

TYPED_TEST_P(KernelsTest, StepsOfAdamAreTheCompanions) {
  for (const optim::AdamOptions& o :
       {optim::AdamOptions{.lr = 0.01}, optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1, .amsgrad = true},
        optim::AdamOptions{.lr = 0.01, .weight_decay = 0.1, .decoupled = true, .maximize = true}}) {
    Tensor p = Tensor::uniform({300}, -1, 1).set_requires_grad();
    optim::Adam adam({p}, o);
    const Tensor zeros = Tensor::zeros({300});
    float *there = this->put(p), *m = this->put(zeros), *v = this->put(zeros),
          *most = o.amsgrad ? this->put(zeros) : nullptr;
    for (int step = 1; step <= 3; ++step) {
      p.set_grad(Tensor::uniform({300}, -1, 1));
      adam.step();
      adam_step(this->where, numbers_of(o, step), there, this->put(p.grad()), m, v, most, 300);
    }
    expect_close(this->get(there, {300}), p, 1e-5);
  }
}

TYPED_TEST_P(KernelsTest, ProductsOfMatricesAreTheCompanionsHoweverTheyAreStored) {
  for (const infeed_matmul& size :
       {infeed_matmul{1, 1, 1}, infeed_matmul{33, 70, 45}, infeed_matmul{64, 32, 96}, infeed_matmul{5, 200, 1}}) {
    const Tensor a = Tensor::uniform({size.m, size.k}, -1, 1), b = Tensor::uniform({size.k, size.n}, -1, 1);
    for (int stored = 0; stored < 4; ++stored) {
      const infeed_matmul shape{size.m, size.n, size.k, stored & 1, (stored >> 1) & 1};
      const float* at = this->put(shape.a_transposed != 0 ? a.t() : a);
      const float* bt = this->put(shape.b_transposed != 0 ? b.t() : b);
      expect_close(this->made({size.m, size.n}, [&](float* c) { matmul(this->where, at, bt, c, shape); }), mm(a, b),
                   1e-5);
    }
  }
}

// Strides, padding, dilation and groups, each axis its own.
inline std::vector<infeed_convolution> convolutions() {
  return {{.n = 2,
           .c = 3,
           .h = 8,
           .w = 9,
           .o = 4,
           .kh = 3,
           .kw = 3,
           .stride = {1, 1},
           .padding = {1, 1},
           .dilation = {1, 1},
           .groups = 1,
           .out_h = 8,
           .out_w = 9},
          {.n = 1,
           .c = 4,
           .h = 7,
           .w = 11,
           .o = 6,
           .kh = 3,
           .kw = 2,
           .stride = {2, 3},
           .padding = {1, 0},
           .dilation = {1, 1},
           .groups = 2,
           .out_h = 4,
           .out_w = 4},
          {.n = 3,
           .c = 2,
           .h = 9,
           .w = 8,
           .o = 2,
           .kh = 2,
           .kw = 3,
           .stride = {1, 1},
           .padding = {0, 2},
           .dilation = {3, 2},
           .groups = 1,
           .out_h = 6,
           .out_w = 8}};
}
inline Tensor convolved(const infeed_convolution& s, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return nn::conv2d(x, weight, bias,
                    {.stride = {s.stride[0], s.stride[1]},
                     .padding = {s.padding[0], s.padding[1]},
                     .dilation = {s.dilation[0], s.dilation[1]},
                     .groups = s.groups});
}

TYPED_TEST_P(KernelsTest, ConvolutionsAndTheirGradientsAreTheCompanions) {
  for (const infeed_convolution& s : convolutions()) {
    Tensor x = Tensor::uniform({s.n, s.c, s.h, s.w}, -1, 1).set_requires_grad();
    Tensor weight = Tensor::uniform({s.o, s.c / s.groups, s.kh, s.kw}, -1, 1).set_requires_grad();
    const Tensor bias = Tensor::uniform({s.o}, -1, 1), y = convolved(s, x, weight, bias);
    const Tensor g = Tensor::uniform(y.shape(), -1, 1);
    y.backward(g);
    const float *xs = this->put(x), *ws = this->put(weight), *bs = this->put(bias), *gs = this->put(g);
    expect_close(this->made(y.shape(), [&](float* to) { conv2d(this->where, xs, ws, bs, to, s); }), y, 1e-5);
    expect_close(this->made(x.shape(), [&](float* to) { conv2d_backward_input(this->where, gs, ws, to, s); }), x.grad(),
                 1e-5);
    expect_close(this->made(weight.shape(), [&](float* to) { conv2d_backward_weight(this->where, gs, xs, to, s); }),
                 weight.grad(), 2e-5);
  }
}

TYPED_TEST_P(KernelsTest, NothingIsDoneToNothing) {
  float* there = this->put(Tensor::ones({1}));
  unary(this->where, code(UnaryOp::kNeg), dense_loop(0, there, {there}));
  softmax(this->where, there, there, {0, 8});
  matmul(this->where, there, there, there, {0, 4, 4});
  expect_close(this->get(there, {1}), Tensor::ones({1}));
}

REGISTER_TYPED_TEST_SUITE_P(KernelsTest, FunctionsOfOneTensorAreTheCompanions, FunctionsOfTwoTensorsAreTheCompanions,
                            GradientsPassWhereReluDid, AnOutputMayBeTheInput, PixelsBecomeNormalizedPlanesInOnePass,
                            RowsAreReduced, NaNIsExtreme, ColumnsAreSummed, SoftmaxIsTheCompanionsAlsoOfLargeValues,
                            GradientsOfSoftmaxAreTheCompanions, StepsOfSGDAreTheCompanions, StepsOfAdamAreTheCompanions,
                            ProductsOfMatricesAreTheCompanionsHoweverTheyAreStored,
                            ConvolutionsAndTheirGradientsAreTheCompanions, NothingIsDoneToNothing);

}  // namespace infeed::device
