#include "train/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/kernels/rows.h"

namespace infeed::kernels {
namespace {

struct Moments {
  float mean;
  float inverse;
};

// weight, bias: null for 1 and 0.
INFEED_CLONES Moments normalise_row(float* out, const float* x, const float* weight, const float* bias, std::int64_t n,
                                    float eps) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i];
  const float mean = sum / static_cast<float>(n);
  float squares = 0.0f;
#pragma omp simd reduction(+ : squares)
  for (std::int64_t i = 0; i < n; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(n) + eps);
  if (weight != nullptr && bias != nullptr) {
#pragma omp simd
    for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * inverse * weight[i] + bias[i];
    return {mean, inverse};
  }
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - mean) * inverse;
  for (std::int64_t i = 0; weight != nullptr && i < n; ++i) out[i] *= weight[i];
  for (std::int64_t i = 0; bias != nullptr && i < n; ++i) out[i] += bias[i];
  return {mean, inverse};
}

// Adds to weight_grad and bias_grad.
INFEED_CLONES void backward_row(float* out, float* weight_grad, float* bias_grad, const float* g, const float* x,
                                const float* weight, std::int64_t n, Moments of_row) {
  const float mean = of_row.mean;
  const float inverse = of_row.inverse;
  float d_sum = 0.0f;
  float dh_sum = 0.0f;
#pragma omp simd reduction(+ : d_sum, dh_sum)
  for (std::int64_t i = 0; i < n; ++i) {
    d_sum += g[i] * weight[i];
    dh_sum += g[i] * weight[i] * (x[i] - mean) * inverse;
  }
  const float d_mean = d_sum / static_cast<float>(n);
  const float dh_mean = dh_sum / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = (x[i] - mean) * inverse;
    out[i] = inverse * (g[i] * weight[i] - d_mean - h * dh_mean);
    weight_grad[i] += g[i] * h;
    bias_grad[i] += g[i];
  }
}

const float* data_or_null(const Tensor& t) { return t.defined() ? t.data<float>() : nullptr; }

}  // namespace

LayerNormResult layer_norm(const Tensor& x, const Tensor& weight_given, const Tensor& bias_given, double eps) {
  const std::int64_t n = x.size(-1);
  const std::int64_t rows = x.numel() / n;
  LayerNormResult r{Tensor::empty(x.shape()), Tensor::empty({rows}), Tensor::empty({rows})};
  const Tensor weight = weight_given.defined() ? weight_given.detach().contiguous() : weight_given;
  const Tensor bias = bias_given.defined() ? bias_given.detach().contiguous() : bias_given;
  const float* const w = data_or_null(weight);
  const float* const b = data_or_null(bias);
  each_row(rows, n, [&](std::int64_t row) {
    const Moments of_row =
        normalise_row(r.y.data<float>() + row * n, x.data<float>() + row * n, w, b, n, static_cast<float>(eps));
    r.mean.data<float>()[row] = of_row.mean;
    r.inverse.data<float>()[row] = of_row.inverse;
  });
  return r;
}

LayerNormGrads layer_norm_backward(const Tensor& g, const Tensor& x, const Tensor& weight_given, const Tensor& mean,
                                   const Tensor& inverse) {
  const std::int64_t n = x.size(-1);
  const std::int64_t rows = x.numel() / n;
  const Tensor weight = weight_given.defined() ? weight_given.detach().contiguous() : Tensor::ones({n});
  LayerNormGrads grads{Tensor::empty(x.shape()), Tensor::zeros({n}), Tensor::zeros({n})};
  const std::int64_t pieces =
      std::clamp<std::int64_t>(rows * n / kGrain, 1, 16);  // fixed: sums do not depend on threads
  std::vector<float> partial(static_cast<std::size_t>(pieces * 2 * n));
  const float* const w = weight.data<float>();
  parallel_chunks(pieces, [&](std::int64_t piece) {
    float* const by_weight = partial.data() + piece * 2 * n;
    float* const by_bias = by_weight + n;
    for (std::int64_t row = rows * piece / pieces; row < rows * (piece + 1) / pieces; ++row)
      backward_row(grads.x.data<float>() + row * n, by_weight, by_bias, g.data<float>() + row * n,
                   x.data<float>() + row * n, w, n, {mean.data<float>()[row], inverse.data<float>()[row]});
  });
  for (std::int64_t piece = 0; piece < pieces; ++piece) {
    for (std::int64_t i = 0; i < n; ++i) {
      grads.weight.data<float>()[i] += partial[static_cast<std::size_t>(piece * 2 * n + i)];
      grads.bias.data<float>()[i] += partial[static_cast<std::size_t>(piece * 2 * n + n + i)];
    }
  }
  return grads;
}

}  // namespace infeed::kernels
