#pragma once
/// The kernels over `each` and `each_row`, which host.h or device.cuh has for its place; included once for each place, behind
/// one of those.

#include <limits>

#include "arithmetic.h"

namespace infeed::cuda {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct NormalizeToNchw {
  const std::uint8_t* in;
  float* out;
  ImageBatch shape;
  Normalization numbers;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const PixelPlace place = place_in_nhwc(i, shape);
    out[i] = normalized(in[place.nhwc], numbers, place.channel);
  }
};
template <class Where>
void normalize_to_nchw(const Where& where, const std::uint8_t* in, float* out, ImageBatch shape,
                       Normalization numbers) {
  each(where, shape.n * shape.h * shape.w * shape.c, NormalizeToNchw{in, out, shape, numbers});
}

struct ToNchw {
  const float* in;
  float* out;
  ImageBatch shape;
  INFEED_ANYWHERE void operator()(std::int64_t i) const { out[i] = in[place_in_nhwc(i, shape).nhwc]; }
};
template <class Where>
void nhwc_to_nchw(const Where& where, const float* in, float* out, ImageBatch shape) {
  each(where, shape.n * shape.h * shape.w * shape.c, ToNchw{in, out, shape});
}

struct ToNhwc {
  const float* in;
  float* out;
  ImageBatch shape;
  INFEED_ANYWHERE void operator()(std::int64_t i) const { out[place_in_nhwc(i, shape).nhwc] = in[i]; }
};
template <class Where>
void nchw_to_nhwc(const Where& where, const float* in, float* out, ImageBatch shape) {
  each(where, shape.n * shape.h * shape.w * shape.c, ToNhwc{in, out, shape});
}

template <class Op>
struct MapOne {
  const float* x;
  float* y;
  Op op;
  INFEED_ANYWHERE void operator()(std::int64_t i) const { y[i] = op(x[i]); }
};
template <class Where>
void unary(const Where& where, Unary op, const float* x, float* y, std::int64_t numel) {
  const auto run = [&](auto f) { each(where, numel, MapOne<decltype(f)>{x, y, f}); };
  switch (op) {
    case Unary::kNeg: return run(Neg{});
    case Unary::kAbs: return run(Abs{});
    case Unary::kExp: return run(Exp{});
    case Unary::kLog: return run(Log{});
    case Unary::kSqrt: return run(Sqrt{});
    case Unary::kRelu: return run(Relu{});
    case Unary::kSigmoid: return run(Sigmoid{});
    case Unary::kTanh: return run(Tanh{});
    case Unary::kGelu: return run(Gelu{});
  }
}

template <class Op>
struct MapTwo {
  const float *a, *b;
  float* y;
  Op op;
  INFEED_ANYWHERE void operator()(std::int64_t i) const { y[i] = op(a[i], b[i]); }
};
template <class Where>
void binary(const Where& where, Binary op, const float* a, const float* b, float* y, std::int64_t numel) {
  const auto run = [&](auto f) { each(where, numel, MapTwo<decltype(f)>{a, b, y, f}); };
  switch (op) {
    case Binary::kAdd: return run(Add{});
    case Binary::kSub: return run(Sub{});
    case Binary::kMul: return run(Mul{});
    case Binary::kDiv: return run(Div{});
    case Binary::kMax: return run(Max{});
    case Binary::kReluBackward: return run(ReluBackward{});
    case Binary::kSigmoidBackward: return run(SigmoidBackward{});
    case Binary::kTanhBackward: return run(TanhBackward{});
  }
}

struct Affine {
  float scale, bias;
  INFEED_ANYWHERE float operator()(float x) const { return scale * x + bias; }
};
template <class Where>
void affine(const Where& where, float scale, float bias, const float* x, float* y, std::int64_t numel) {
  each(where, numel, MapOne<Affine>{x, y, {scale, bias}});
}

/// Of one row, its elements.
struct RowOf {
  const float* x;
  INFEED_ANYWHERE float operator()(std::int64_t i) const { return x[i]; }
};

template <class Join>
struct ReduceRow {
  const float* x;
  float* y;
  std::int64_t columns;
  float neutral, factor;
  Join join;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float result = lanes.reduce(columns, neutral, RowOf{x + row * columns}, join);
    lanes.once([&] { y[row] = result * factor; });
  }
};
template <class Where>
void reduce_rows(const Where& where, Reduction op, const float* x, float* y, Rows shape) {
  const auto run = [&](auto join, float neutral, float factor) {
    each_row(where, shape.rows, ReduceRow<decltype(join)>{x, y, shape.columns, neutral, factor, join});
  };
  switch (op) {
    case Reduction::kSum: return run(Add{}, 0.0F, 1.0F);
    case Reduction::kMean: return run(Add{}, 0.0F, 1.0F / static_cast<float>(shape.columns));
    case Reduction::kMax: return run(Max{}, -kInfinity, 1.0F);
    case Reduction::kMin: return run(Min{}, kInfinity, 1.0F);
  }
}

/// Of one column, its elements.
struct ColumnOf {
  const float* x;
  std::int64_t columns;
  INFEED_ANYWHERE float operator()(std::int64_t i) const { return x[i * columns]; }
};
struct SumColumn {
  const float* x;
  float* y;
  Rows shape;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t column, const Lanes& lanes) const {
    const float result = lanes.reduce(shape.rows, 0.0F, ColumnOf{x + column, shape.columns}, Add{});
    lanes.once([&] { y[column] = result; });
  }
};
// TODO(perf): neighbouring columns share memory lines; a block could take 32 of them.
template <class Where>
void sum_columns(const Where& where, const float* x, float* y, Rows shape) {
  each_row(where, shape.columns, SumColumn{x, y, shape});
}

struct ExpAbove {
  const float* x;
  float floor;
  INFEED_ANYWHERE float operator()(std::int64_t i) const { return std::exp(x[i] - floor); }
};
template <bool logarithm>
struct SoftmaxRow {
  const float* x;
  float* y;
  std::int64_t columns;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float* in = x + row * columns;
    float* out = y + row * columns;
    const float top = lanes.reduce(columns, -kInfinity, RowOf{in}, Max{});
    const float sum = lanes.reduce(columns, 0.0F, ExpAbove{in, top}, Add{});
    const float log_sum = std::log(sum);
    lanes.each(columns,
               [=](std::int64_t i) { out[i] = logarithm ? in[i] - top - log_sum : std::exp(in[i] - top) / sum; });
  }
};
template <class Where>
void softmax(const Where& where, const float* x, float* y, Rows shape) {
  each_row(where, shape.rows, SoftmaxRow<false>{x, y, shape.columns});
}
template <class Where>
void log_softmax(const Where& where, const float* x, float* y, Rows shape) {
  each_row(where, shape.rows, SoftmaxRow<true>{x, y, shape.columns});
}

struct Product {
  const float *a, *b;
  INFEED_ANYWHERE float operator()(std::int64_t i) const { return a[i] * b[i]; }
};
struct SoftmaxBackwardRow {
  const float *g, *y;
  float* out;
  std::int64_t columns;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float *gs = g + row * columns, *ys = y + row * columns;
    float* to = out + row * columns;
    const float sum = lanes.reduce(columns, 0.0F, Product{gs, ys}, Add{});
    lanes.each(columns, [=](std::int64_t i) { to[i] = ys[i] * (gs[i] - sum); });
  }
};
template <class Where>
void softmax_backward(const Where& where, const float* g, const float* y, float* out, Rows shape) {
  each_row(where, shape.rows, SoftmaxBackwardRow{g, y, out, shape.columns});
}

struct LogSoftmaxBackwardRow {
  const float *g, *y;
  float* out;
  std::int64_t columns;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float *gs = g + row * columns, *ys = y + row * columns;
    float* to = out + row * columns;
    const float sum = lanes.reduce(columns, 0.0F, RowOf{gs}, Add{});
    lanes.each(columns, [=](std::int64_t i) { to[i] = gs[i] - std::exp(ys[i]) * sum; });
  }
};
template <class Where>
void log_softmax_backward(const Where& where, const float* g, const float* y, float* out, Rows shape) {
  each_row(where, shape.rows, LogSoftmaxBackwardRow{g, y, out, shape.columns});
}

template <class Where>
void sgd_step(const Where& where, SgdNumbers numbers, float* param, const float* grad, float* momentum_buffer,
              std::int64_t numel) {
  each(where, numel, SgdStep{numbers, param, momentum_buffer, grad});
}
template <class Where>
void adam_step(const Where& where, AdamNumbers numbers, float* param, const float* grad, float* exp_avg,
               float* exp_avg_sq, float* max_exp_avg_sq, std::int64_t numel) {
  each(where, numel, AdamStep{numbers, param, exp_avg, exp_avg_sq, max_exp_avg_sq, grad});
}

/// All of these for one place.
#define INFEED_CUDA_KERNELS(Where)                                                                       \
  template void normalize_to_nchw(const Where&, const std::uint8_t*, float*, ImageBatch, Normalization); \
  template void nhwc_to_nchw(const Where&, const float*, float*, ImageBatch);                            \
  template void nchw_to_nhwc(const Where&, const float*, float*, ImageBatch);                            \
  template void unary(const Where&, Unary, const float*, float*, std::int64_t);                          \
  template void binary(const Where&, Binary, const float*, const float*, float*, std::int64_t);          \
  template void affine(const Where&, float, float, const float*, float*, std::int64_t);                  \
  template void reduce_rows(const Where&, Reduction, const float*, float*, Rows);                        \
  template void sum_columns(const Where&, const float*, float*, Rows);                                   \
  template void softmax(const Where&, const float*, float*, Rows);                                       \
  template void log_softmax(const Where&, const float*, float*, Rows);                                   \
  template void softmax_backward(const Where&, const float*, const float*, float*, Rows);                \
  template void log_softmax_backward(const Where&, const float*, const float*, float*, Rows);            \
  template void sgd_step(const Where&, SgdNumbers, float*, const float*, float*, std::int64_t);          \
  template void adam_step(const Where&, AdamNumbers, float*, const float*, float*, float*, float*, std::int64_t)

}  // namespace infeed::cuda
