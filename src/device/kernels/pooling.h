#pragma once
/// Pooling, one element of the result at a time: backward gathers, so that nothing is added atomically. Included behind
/// host.h or device.cuh.

#include <cmath>
#include <cstdint>

#include "device/kernels/anywhere.h"
#include "device/kernels/kernels.h"

namespace infeed::device {

/// Rows (or columns) [first, last).
struct Span {
  std::int64_t first, last;
};
/// What the window of output row `out` covers of the input: never nothing, since padding is at most half a window.
INFEED_ANYWHERE inline Span window_of(const infeed_pooling& s, int axis, std::int64_t out) {
  const std::int64_t size = axis == 0 ? s.h : s.w;
  const std::int64_t first = out * s.stride[axis] - s.padding[axis], last = first + s.kernel[axis];
  return {first < 0 ? 0 : first, last < size ? last : size};
}
INFEED_ANYWHERE inline std::int64_t count_of(const Span& span) { return span.last - span.first; }
/// The output rows whose windows cover input row `in`.
INFEED_ANYWHERE inline Span outputs_of(const infeed_pooling& s, int axis, std::int64_t in) {
  const std::int64_t size = axis == 0 ? s.out_h : s.out_w, stride = s.stride[axis];
  const std::int64_t past = in + s.padding[axis], last = past / stride + 1;
  const std::int64_t first = past < s.kernel[axis] ? 0 : (past - s.kernel[axis]) / stride + 1;
  return {first, last < size ? last : size};
}

struct MaxPool {
  const float* x;
  float* y;
  std::int64_t* places;
  infeed_pooling s;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t plane = i / (s.out_h * s.out_w);
    const Span rows = window_of(s, 0, i / s.out_w % s.out_h), columns = window_of(s, 1, i % s.out_w);
    const float* in = x + plane * s.h * s.w;
    std::int64_t best = rows.first * s.w + columns.first;
    for (std::int64_t row = rows.first; row < rows.last; ++row)
      for (std::int64_t column = columns.first; column < columns.last; ++column) {
        const std::int64_t at = row * s.w + column;
        if (in[at] > in[best] || (std::isnan(in[at]) && !std::isnan(in[best]))) best = at;
      }
    y[i] = in[best];
    places[i] = best;
  }
};
template <class Where>
void max_pool2d(const Where& where, const float* x, float* y, std::int64_t* places, infeed_pooling shape) {
  each(where, shape.planes * shape.out_h * shape.out_w, MaxPool{x, y, places, shape});
}

struct MaxPoolBackward {
  const float* g;
  const std::int64_t* places;
  float* out;
  infeed_pooling s;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t plane = i / (s.h * s.w), at = i % (s.h * s.w);
    const Span rows = outputs_of(s, 0, at / s.w), columns = outputs_of(s, 1, at % s.w);
    float sum = 0;
    for (std::int64_t row = rows.first; row < rows.last; ++row)
      for (std::int64_t column = columns.first; column < columns.last; ++column) {
        const std::int64_t from = (plane * s.out_h + row) * s.out_w + column;
        if (places[from] == at) sum += g[from];
      }
    out[i] = sum;
  }
};
template <class Where>
void max_pool2d_backward(const Where& where, const float* g, const std::int64_t* places, float* out,
                         infeed_pooling shape) {
  each(where, shape.planes * shape.h * shape.w, MaxPoolBackward{g, places, out, shape});
}

struct AveragePool {
  const float* x;
  float* y;
  infeed_pooling s;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t plane = i / (s.out_h * s.out_w);
    const Span rows = window_of(s, 0, i / s.out_w % s.out_h), columns = window_of(s, 1, i % s.out_w);
    float sum = 0;
    for (std::int64_t row = rows.first; row < rows.last; ++row)
      for (std::int64_t column = columns.first; column < columns.last; ++column)
        sum += x[(plane * s.h + row) * s.w + column];
    y[i] = sum / static_cast<float>(count_of(rows) * count_of(columns));
  }
};
template <class Where>
void avg_pool2d(const Where& where, const float* x, float* y, infeed_pooling shape) {
  each(where, shape.planes * shape.out_h * shape.out_w, AveragePool{x, y, shape});
}

struct AveragePoolBackward {
  const float* g;
  float* out;
  infeed_pooling s;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t plane = i / (s.h * s.w), at = i % (s.h * s.w);
    const Span rows = outputs_of(s, 0, at / s.w), columns = outputs_of(s, 1, at % s.w);
    float sum = 0;
    for (std::int64_t row = rows.first; row < rows.last; ++row)
      for (std::int64_t column = columns.first; column < columns.last; ++column)
        sum += g[(plane * s.out_h + row) * s.out_w + column] /
               static_cast<float>(count_of(window_of(s, 0, row)) * count_of(window_of(s, 1, column)));
    out[i] = sum;
  }
};
template <class Where>
void avg_pool2d_backward(const Where& where, const float* g, float* out, infeed_pooling shape) {
  each(where, shape.planes * shape.h * shape.w, AveragePoolBackward{g, out, shape});
}

}  // namespace infeed::device
