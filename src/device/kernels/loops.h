#pragma once
/// Rows, images and optimizer steps over `each` and `each_row`, which host.h or device.cuh has for its place; included
/// behind one of those.

#include <limits>

#include "device/kernels/arithmetic.h"

namespace infeed::device {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct NormalizeToNchw {
  const std::uint8_t* in;
  float* out;
  infeed_images shape;
  infeed_normalization numbers;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const PixelPlace place = place_in_nhwc(i, shape);
    out[i] = normalized(in[place.nhwc], numbers, place.channel);
  }
};
template <class Where>
void normalize_to_nchw(const Where& where, const std::uint8_t* in, float* out, infeed_images shape,
                       infeed_normalization numbers) {
  each(where, shape.n * shape.h * shape.w * shape.c, NormalizeToNchw{in, out, shape, numbers});
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
void reduce_rows(const Where& where, std::int32_t reduction, const float* x, float* y, infeed_rows shape) {
  const auto run = [&](auto join, float neutral, float factor) {
    each_row(where, shape.rows, ReduceRow<decltype(join)>{x, y, shape.columns, neutral, factor, join});
  };
  switch (reduction) {
    case INFEED_REDUCE_SUM: return run(Add{}, 0.0F, 1.0F);
    case INFEED_REDUCE_MEAN: return run(Add{}, 0.0F, 1.0F / static_cast<float>(shape.columns));
    case INFEED_REDUCE_MAX: return run(Max{}, -kInfinity, 1.0F);
    default: return run(Min{}, kInfinity, 1.0F);
  }
}

/// The place of the first of the largest elements, NaN above all, found in two passes: its value, then its place.
struct ArgmaxRow {
  const float* x;
  std::int64_t* y;
  std::int64_t columns;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float* in = x + row * columns;
    const float top = lanes.reduce(columns, -kInfinity, RowOf{in}, Max{});
    const std::int64_t last = columns - 1;
    const auto place = [=](std::int64_t i) { return in[i] == top || std::isnan(in[i]) ? i : last; };
    const auto first = [](std::int64_t a, std::int64_t b) { return a < b ? a : b; };
    const std::int64_t at = lanes.reduce(columns, last, place, first);
    lanes.once([&] { y[row] = at; });
  }
};
template <class Where>
void argmax_rows(const Where& where, const float* x, std::int64_t* y, infeed_rows shape) {
  each_row(where, shape.rows, ArgmaxRow{x, y, shape.columns});
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
  infeed_rows shape;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t column, const Lanes& lanes) const {
    const float result = lanes.reduce(shape.rows, 0.0F, ColumnOf{x + column, shape.columns}, Add{});
    lanes.once([&] { y[column] = result; });
  }
};
// TODO(perf): neighbouring columns share memory lines; a block could take 32 of them.
template <class Where>
void sum_columns(const Where& where, const float* x, float* y, infeed_rows shape) {
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
void softmax(const Where& where, const float* x, float* y, infeed_rows shape) {
  each_row(where, shape.rows, SoftmaxRow<false>{x, y, shape.columns});
}
template <class Where>
void log_softmax(const Where& where, const float* x, float* y, infeed_rows shape) {
  each_row(where, shape.rows, SoftmaxRow<true>{x, y, shape.columns});
}

struct Product {
  const float *a, *b;
  INFEED_ANYWHERE float operator()(std::int64_t i) const { return a[i] * b[i]; }
};
template <bool logarithm>
struct SoftmaxBackwardRow {
  const float *g, *y;
  float* out;
  std::int64_t columns;
  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float *gs = g + row * columns, *ys = y + row * columns;
    float* to = out + row * columns;
    const float sum =
        logarithm ? lanes.reduce(columns, 0.0F, RowOf{gs}, Add{}) : lanes.reduce(columns, 0.0F, Product{gs, ys}, Add{});
    lanes.each(columns,
               [=](std::int64_t i) { to[i] = logarithm ? gs[i] - std::exp(ys[i]) * sum : ys[i] * (gs[i] - sum); });
  }
};
template <class Where>
void softmax_backward(const Where& where, const float* g, const float* y, float* out, infeed_rows shape) {
  each_row(where, shape.rows, SoftmaxBackwardRow<false>{g, y, out, shape.columns});
}
template <class Where>
void log_softmax_backward(const Where& where, const float* g, const float* y, float* out, infeed_rows shape) {
  each_row(where, shape.rows, SoftmaxBackwardRow<true>{g, y, out, shape.columns});
}

template <class Where>
void sgd_step(const Where& where, infeed_sgd numbers, float* param, const float* grad, float* momentum_buffer,
              std::int64_t numel) {
  each(where, numel, SgdStep{numbers, param, momentum_buffer, grad});
}
template <class Where>
void adam_step(const Where& where, infeed_adam numbers, float* param, const float* grad, float* exp_avg,
               float* exp_avg_sq, float* max_exp_avg_sq, std::int64_t numel) {
  each(where, numel, AdamStep{numbers, param, exp_avg, exp_avg_sq, max_exp_avg_sq, grad});
}

}  // namespace infeed::device
