#pragma once
/// Losses of class labels, row by row. Included behind host.h or device.cuh.

#include <cmath>
#include <cstdint>

#include "device/kernels/arithmetic.h"
#include "device/kernels/loops.h"

namespace infeed::device {

INFEED_ANYWHERE inline bool is_class(std::int64_t label, const infeed_classes& shape) {
  return label >= 0 && label < shape.columns;
}

struct PickClass {
  const float* x;
  const std::int64_t* labels;
  float *losses, *counts;
  infeed_classes shape;
  INFEED_ANYWHERE void operator()(std::int64_t row) const {
    const std::int64_t label = labels[row];
    const bool is_counted = label != shape.ignore_index;
    counts[row] = is_counted ? 1.0F : 0.0F;
    losses[row] = !is_counted ? 0.0F : is_class(label, shape) ? -x[row * shape.columns + label] : NAN;
  }
};
template <class Where>
void pick_classes(const Where& where, const float* x, const std::int64_t* labels, float* losses, float* counts,
                  infeed_classes shape) {
  each(where, shape.rows, PickClass{x, labels, losses, counts, shape});
}

struct PickClassBackward {
  const float* g;
  const std::int64_t* labels;
  float* out;
  infeed_classes shape;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t row = i / shape.columns, label = labels[row];
    out[i] = label == i % shape.columns && label != shape.ignore_index ? -g[row] : 0.0F;
  }
};
template <class Where>
void pick_classes_backward(const Where& where, const float* g, const std::int64_t* labels, float* out,
                           infeed_classes shape) {
  each(where, shape.rows * shape.columns, PickClassBackward{g, labels, out, shape});
}

/// (1 - s) (lse - x[label]) + s (lse - mean(x)), s the smoothing.
struct CrossEntropyRow {
  const float* x;
  const std::int64_t* labels;
  float *losses, *logsumexp, *counts;
  infeed_classes shape;

  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t row, const Lanes& lanes) const {
    const float* in = x + row * shape.columns;
    const float top = lanes.reduce(shape.columns, -kInfinity, RowOf{in}, Max{});
    const float lse = top + std::log(lanes.reduce(shape.columns, 0.0F, ExpAbove{in, top}, Add{}));
    const auto smoothing = static_cast<float>(shape.label_smoothing);
    float mean = 0;
    if (smoothing != 0.0F)
      mean = lanes.reduce(shape.columns, 0.0F, RowOf{in}, Add{}) / static_cast<float>(shape.columns);
    lanes.once([&] {
      const std::int64_t label = labels[row];
      const bool is_counted = label != shape.ignore_index;
      const float at_label = is_class(label, shape) ? in[label] : NAN;
      const float loss = (1.0F - smoothing) * (lse - at_label) + (smoothing != 0.0F ? smoothing * (lse - mean) : 0.0F);
      logsumexp[row] = lse;
      counts[row] = is_counted ? 1.0F : 0.0F;
      losses[row] = is_counted ? loss : 0.0F;
    });
  }
};
template <class Where>
void cross_entropy(const Where& where, const float* x, const std::int64_t* labels, float* losses, float* logsumexp,
                   float* counts, infeed_classes shape) {
  each_row(where, shape.rows, CrossEntropyRow{x, labels, losses, logsumexp, counts, shape});
}

/// (softmax(x) - target) scale
struct CrossEntropyBackward {
  const float *scale, *x, *logsumexp;
  const std::int64_t* labels;
  float* out;
  infeed_classes shape;
  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const std::int64_t row = i / shape.columns, label = labels[row];
    const auto smoothing = static_cast<float>(shape.label_smoothing);
    const float target =
        (label == i % shape.columns ? 1.0F - smoothing : 0.0F) + smoothing / static_cast<float>(shape.columns);
    out[i] = label == shape.ignore_index ? 0.0F : (std::exp(x[i] - logsumexp[row]) - target) * *scale;
  }
};
template <class Where>
void cross_entropy_backward(const Where& where, const float* scale, const float* x, const float* logsumexp,
                            const std::int64_t* labels, float* out, infeed_classes shape) {
  each(where, shape.rows * shape.columns, CrossEntropyBackward{scale, x, logsumexp, labels, out, shape});
}

}  // namespace infeed::device
