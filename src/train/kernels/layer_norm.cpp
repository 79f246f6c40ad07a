#include "train/kernels/layer_norm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "train/kernels/parallel.h"

namespace infeed::kernels {
namespace {

constexpr int kLanes = 16;  // independent sums: the compiler makes vectors of them

// Sums of f(i) over a row; f gives a pair.
template <class F>
std::pair<float, float> two_sums(std::int64_t n, F&& f) {
  float first[kLanes] = {}, second[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) {
      const auto [a, b] = f(i + k);
      first[k] += a;
      second[k] += b;
    }
  }
  double a_total = 0.0, b_total = 0.0;
  for (; i < n; ++i) {
    const auto [a, b] = f(i);
    a_total += static_cast<double>(a);
    b_total += static_cast<double>(b);
  }
  for (int k = 0; k < kLanes; ++k) {
    a_total += static_cast<double>(first[k]);
    b_total += static_cast<double>(second[k]);
  }
  return {static_cast<float>(a_total), static_cast<float>(b_total)};
}

const float* data_or_null(const Tensor& t) { return t.defined() ? t.data<float>() : nullptr; }

}  // namespace

LayerNormResult layer_norm(const Tensor& x, const Tensor& weight_given, const Tensor& bias_given, double eps) {
  const std::int64_t n = x.size(-1);
  const std::int64_t rows = x.numel() / n;
  LayerNormResult r{Tensor::empty(x.shape()), Tensor::empty({rows}), Tensor::empty({rows})};
  const Tensor weight = weight_given.defined() ? weight_given.detach().contiguous() : weight_given;
  const Tensor bias = bias_given.defined() ? bias_given.detach().contiguous() : bias_given;
  parallel_for(rows, std::max<std::int64_t>(1, kGrain / n),
               [&, w = data_or_null(weight), b = data_or_null(bias)](auto first, auto last) {
                 for (auto row = first; row < last; ++row) {
                   const float* const in = x.data<float>() + row * n;
                   float* const out = r.y.data<float>() + row * n;
                   const float mean = two_sums(n, [in](std::int64_t i) { return std::pair(in[i], 0.0f); }).first /
                                      static_cast<float>(n);
                   const float squares = two_sums(n, [in, mean](std::int64_t i) {
                                           const float d = in[i] - mean;
                                           return std::pair(d * d, 0.0f);
                                         }).first;
                   const float inverse = 1.0f / std::sqrt(squares / static_cast<float>(n) + static_cast<float>(eps));
                   for (std::int64_t i = 0; i < n; ++i) out[i] = (in[i] - mean) * inverse;
                   for (std::int64_t i = 0; w != nullptr && i < n; ++i) out[i] *= w[i];
                   for (std::int64_t i = 0; b != nullptr && i < n; ++i) out[i] += b[i];
                   r.mean.data<float>()[row] = mean;
                   r.inverse.data<float>()[row] = inverse;
                 }
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
    for (std::int64_t row = rows * piece / pieces; row < rows * (piece + 1) / pieces; ++row) {
      const float* const in = x.data<float>() + row * n;
      const float* const up = g.data<float>() + row * n;
      float* const out = grads.x.data<float>() + row * n;
      const float m = mean.data<float>()[row];
      const float s = inverse.data<float>()[row];
      const auto [d_sum, dh_sum] =
          two_sums(n, [=](std::int64_t i) { return std::pair(up[i] * w[i], up[i] * w[i] * (in[i] - m) * s); });
      const float d_mean = d_sum / static_cast<float>(n);
      const float dh_mean = dh_sum / static_cast<float>(n);
#pragma GCC ivdep
      for (std::int64_t i = 0; i < n; ++i) {
        const float h = (in[i] - m) * s;
        out[i] = s * (up[i] * w[i] - d_mean - h * dh_mean);
        by_weight[i] += up[i] * h;
        by_bias[i] += up[i];
      }
    }
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
