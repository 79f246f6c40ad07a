#pragma once
/// Convolutions over `each` and `each_row`, which host.h or device.cuh has for its place; included behind one of those.
/// One element of the result at a time, straight from its definition: for the host, and where there is no cuDNN.

#include <cstdint>

#include "device/kernels/arithmetic.h"

namespace infeed::device {

/// Of element i of a tensor [.., planes, rows, columns].
struct PlanePlace {
  std::int64_t outer, plane, row, column;
};
INFEED_ANYWHERE inline PlanePlace plane_place(std::int64_t i, std::int64_t planes, std::int64_t rows,
                                              std::int64_t columns) {
  const std::int64_t column = i % columns, row = i / columns % rows, plane = i / (columns * rows);
  return {plane / planes, plane % planes, row, column};
}

/// Where the kernel's element lies on the input for an output row (or column); outside [0, size): on the padding.
INFEED_ANYWHERE inline std::int64_t input_place(const infeed_convolution& s, int axis, std::int64_t out,
                                                std::int64_t kernel) {
  return out * s.stride[axis] - s.padding[axis] + kernel * s.dilation[axis];
}
/// The output row (or column) that meets the input there; -1: none.
INFEED_ANYWHERE inline std::int64_t output_place(const infeed_convolution& s, int axis, std::int64_t in,
                                                 std::int64_t kernel) {
  const std::int64_t place = in + s.padding[axis] - kernel * s.dilation[axis];
  if (place < 0 || place % s.stride[axis] != 0) return -1;
  const std::int64_t out = place / s.stride[axis];
  return out < (axis == 0 ? s.out_h : s.out_w) ? out : -1;
}

struct ConvolutionForward {
  const float *x, *weight, *bias;
  float* y;
  infeed_convolution s;

  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const PlanePlace at = plane_place(i, s.o, s.out_h, s.out_w);
    const std::int64_t depth = s.c / s.groups, first = at.plane / (s.o / s.groups) * depth;
    float sum = bias != nullptr ? bias[at.plane] : 0.0F;
    for (std::int64_t c = 0; c < depth; ++c)
      for (std::int64_t ky = 0; ky < s.kh; ++ky)
        sum += row(x + (at.outer * s.c + first + c) * s.h * s.w, weight + ((at.plane * depth + c) * s.kh + ky) * s.kw,
                   input_place(s, 0, at.row, ky), at.column);
    y[i] = sum;
  }
  /// One row of the kernel on one row of an input plane.
  INFEED_ANYWHERE float row(const float* plane, const float* kernel, std::int64_t in_row, std::int64_t column) const {
    float sum = 0;
    if (in_row < 0 || in_row >= s.h) return sum;
    for (std::int64_t kx = 0; kx < s.kw; ++kx) {
      const std::int64_t in_column = input_place(s, 1, column, kx);
      if (in_column >= 0 && in_column < s.w) sum += plane[in_row * s.w + in_column] * kernel[kx];
    }
    return sum;
  }
};
template <class Where>
void conv2d(const Where& where, const float* x, const float* weight, const float* bias, float* y,
            infeed_convolution shape) {
  each(where, shape.n * shape.o * shape.out_h * shape.out_w, ConvolutionForward{x, weight, bias, y, shape});
}

struct ConvolutionBackwardInput {
  const float *g, *weight;
  float* out;
  infeed_convolution s;

  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const PlanePlace at = plane_place(i, s.c, s.h, s.w);
    const std::int64_t depth = s.c / s.groups, width = s.o / s.groups, first = at.plane / depth * width;
    float sum = 0;
    for (std::int64_t o = first; o < first + width; ++o)
      for (std::int64_t ky = 0; ky < s.kh; ++ky)
        sum += row(g + (at.outer * s.o + o) * s.out_h * s.out_w,
                   weight + ((o * depth + at.plane % depth) * s.kh + ky) * s.kw, output_place(s, 0, at.row, ky),
                   at.column);
    out[i] = sum;
  }
  INFEED_ANYWHERE float row(const float* plane, const float* kernel, std::int64_t out_row, std::int64_t column) const {
    float sum = 0;
    if (out_row < 0) return sum;
    for (std::int64_t kx = 0; kx < s.kw; ++kx) {
      const std::int64_t out_column = output_place(s, 1, column, kx);
      if (out_column >= 0) sum += plane[out_row * s.out_w + out_column] * kernel[kx];
    }
    return sum;
  }
};
template <class Where>
void conv2d_backward_input(const Where& where, const float* g, const float* weight, float* out,
                           infeed_convolution shape) {
  each(where, shape.n * shape.c * shape.h * shape.w, ConvolutionBackwardInput{g, weight, out, shape});
}

/// What each output element adds to one element of the weight.
struct WeightShare {
  const float *g, *x;
  infeed_convolution s;
  std::int64_t o, c, ky, kx;

  INFEED_ANYWHERE float operator()(std::int64_t i) const {
    const std::int64_t column = i % s.out_w, row = i / s.out_w % s.out_h, image = i / (s.out_w * s.out_h);
    const std::int64_t in_row = input_place(s, 0, row, ky), in_column = input_place(s, 1, column, kx);
    if (in_row < 0 || in_row >= s.h || in_column < 0 || in_column >= s.w) return 0.0F;
    return g[((image * s.o + o) * s.out_h + row) * s.out_w + column] *
           x[((image * s.c + c) * s.h + in_row) * s.w + in_column];
  }
};
struct ConvolutionBackwardWeight {
  const float *g, *x;
  float* out;
  infeed_convolution s;

  template <class Lanes>
  INFEED_LANE void operator()(std::int64_t element, const Lanes& lanes) const {
    const std::int64_t depth = s.c / s.groups;
    const PlanePlace at = plane_place(element, depth, s.kh, s.kw);
    const std::int64_t channel = at.outer / (s.o / s.groups) * depth + at.plane;
    const WeightShare share{g, x, s, at.outer, channel, at.row, at.column};
    const float sum = lanes.reduce(s.n * s.out_h * s.out_w, 0.0F, share, Add{});
    lanes.once([&] { out[element] = sum; });
  }
};
template <class Where>
void conv2d_backward_weight(const Where& where, const float* g, const float* x, float* out, infeed_convolution shape) {
  each_row(where, shape.o * (shape.c / shape.groups) * shape.kh * shape.kw,
           ConvolutionBackwardWeight{g, x, out, shape});
}

}  // namespace infeed::device
