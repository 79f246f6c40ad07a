#pragma once
/// What each kernel computes for one element, and where it finds it. No loops, no memory but what is handed in.

#include <cmath>
#include <cstdint>

#include "device/kernels/anywhere.h"
#include "device/kernels/kernels.h"

namespace infeed::device {

struct PixelPlace {
  std::int64_t nhwc;
  std::int32_t channel;
};
/// Of element i of an [n, c, h, w] tensor: its place in [n, h, w, c].
INFEED_ANYWHERE inline PixelPlace place_in_nhwc(std::int64_t i, const infeed_images& shape) {
  const std::int64_t pixels = shape.h * shape.w;
  const std::int64_t pixel = i % pixels, plane = i / pixels;
  const std::int64_t channel = plane % shape.c, image = plane / shape.c;
  return {(image * pixels + pixel) * shape.c + channel, static_cast<std::int32_t>(channel)};
}

INFEED_ANYWHERE inline float normalized(std::uint8_t value, const infeed_normalization& numbers, std::int32_t channel) {
  return (static_cast<float>(value) / 255.0F - numbers.mean[channel]) / numbers.std[channel];
}

struct Add {
  INFEED_ANYWHERE float operator()(float a, float b) const { return a + b; }
};
/// NaN wins.
struct Max {
  INFEED_ANYWHERE float operator()(float a, float b) const { return a > b || std::isnan(a) ? a : b; }
};
struct Min {
  INFEED_ANYWHERE float operator()(float a, float b) const { return a < b || std::isnan(a) ? a : b; }
};
struct SgdStep {
  infeed_sgd numbers;
  float *param, *momentum_buffer;
  const float* grad;

  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    const float p = param[i];
    float g = (numbers.maximize != 0 ? -grad[i] : grad[i]) + numbers.weight_decay * p;
    if (numbers.momentum != 0.0F) {
      const float b = numbers.first != 0 ? g : numbers.momentum * momentum_buffer[i] + (1.0F - numbers.dampening) * g;
      momentum_buffer[i] = b;
      g = numbers.nesterov != 0 ? g + numbers.momentum * b : b;
    }
    param[i] = p - numbers.lr * g;
  }
};

struct AdamStep {
  infeed_adam numbers;
  float *param, *exp_avg, *exp_avg_sq, *max_exp_avg_sq;
  const float* grad;

  INFEED_ANYWHERE void operator()(std::int64_t i) const {
    float p = param[i];
    float g = numbers.maximize != 0 ? -grad[i] : grad[i];
    if (numbers.decoupled != 0)
      p *= 1.0F - numbers.lr * numbers.weight_decay;
    else
      g += numbers.weight_decay * p;
    const float m = numbers.beta1 * exp_avg[i] + (1.0F - numbers.beta1) * g;
    const float v = numbers.beta2 * exp_avg_sq[i] + (1.0F - numbers.beta2) * g * g;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    float largest = v;
    if (max_exp_avg_sq != nullptr) largest = max_exp_avg_sq[i] = Max{}(max_exp_avg_sq[i], v);
    const float divisor = std::sqrt(largest) / numbers.root_correction2 + numbers.eps;
    param[i] = p - numbers.lr / numbers.correction1 * m / divisor;
  }
};

}  // namespace infeed::device
