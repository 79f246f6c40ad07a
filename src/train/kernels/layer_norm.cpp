#include "train/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>

#include "train/kernels/rows.h"

namespace infeed::kernels {
namespace {

struct Moments {
  float mean;
  float inverse;
};

// Of term(x) for each x, in two chains of additions: one waits for itself.
template <class Term>
INFEED_INLINE float sum_of(const float* x, std::int64_t n, Term term) noexcept {
  const float* const second = x + n / 2;
  float a = n % 2 != 0 ? term(x[n - 1]) : 0.0f;
  float b = 0.0f;
#pragma omp simd reduction(+ : a, b)
  for (std::int64_t i = 0; i < n / 2; ++i) {
    a += term(x[i]);
    b += term(second[i]);
  }
  return a + b;
}

// weight, bias: null for 1 and 0.
INFEED_CLONES Moments normalise_row(float* out, const float* x, const float* weight, const float* bias, std::int64_t n,
                                    float eps) {
  const float mean = sum_of(x, n, [](float v) { return v; }) / static_cast<float>(n);
  const float squares = sum_of(x, n, [mean](float v) { return (v - mean) * (v - mean); });
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
    const float d = g[i] * weight[i];
    d_sum += d;
    dh_sum += d * (x[i] - mean);
  }
  const float d_mean = d_sum / static_cast<float>(n);
  const float dh_mean = dh_sum * inverse / static_cast<float>(n);
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float h = (x[i] - mean) * inverse;
    out[i] = inverse * (g[i] * weight[i] - d_mean - h * dh_mean);
    weight_grad[i] += g[i] * h;
    bias_grad[i] += g[i];
  }
}

INFEED_CLONES void add_to(float* sum, const float* x, std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) sum[i] += x[i];
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
  each_row(rows, n,
           [=, in = x.data<float>(), out = r.y.data<float>(), mean = r.mean.data<float>(),
            inverse = r.inverse.data<float>()](std::int64_t row) {
             const Moments of_row = normalise_row(out + row * n, in + row * n, w, b, n, static_cast<float>(eps));
             mean[row] = of_row.mean;
             inverse[row] = of_row.inverse;
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
  const Tensor partial = Tensor::zeros({pieces, 2, n});    // of weight and bias
  parallel_chunks(pieces, [=, sums = partial.data<float>(), out = grads.x.data<float>(), up = g.data<float>(),
                           in = x.data<float>(), w = weight.data<float>(), means = mean.data<float>(),
                           inverses = inverse.data<float>()](std::int64_t piece) {
    float* const by_weight = sums + piece * 2 * n;
    for (std::int64_t row = rows * piece / pieces; row < rows * (piece + 1) / pieces; ++row)
      backward_row(out + row * n, by_weight, by_weight + n, up + row * n, in + row * n, w, n,
                   {means[row], inverses[row]});
  });
  const float* sums = partial.data<float>();
  for (std::int64_t piece = 0; piece < pieces; ++piece, sums += 2 * n) {
    add_to(grads.weight.data<float>(), sums, n);
    add_to(grads.bias.data<float>(), sums + n, n);
  }
  return grads;
}

}  // namespace infeed::kernels
