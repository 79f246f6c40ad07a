#include "train/kernels/cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infeed/base/error.h"
#include "train/kernels/parallel.h"
#include "train/kernels/vector_math.h"

namespace infeed::kernels {
namespace {

// Calls row(i) for every row of [rows, classes].
template <class Row>
void each_row(const Tensor& x, Row&& row) {
  const std::int64_t classes = std::max<std::int64_t>(x.size(-1), 1);
  parallel_for(x.numel() / classes, std::max<std::int64_t>(1, kGrain / 8 / classes), [&](auto first, auto last) {
    for (auto i = first; i < last; ++i) row(i);
  });
}

std::int64_t count_labels(const Tensor& labels, std::int64_t classes, std::int64_t ignore_index) {
  const auto* const label = labels.data<std::int64_t>();
  std::int64_t counted = 0;
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    if (label[i] == ignore_index) continue;
    if (label[i] < 0 || label[i] >= classes)
      throw IndexError(fmt::format("cross_entropy: label {} of row {} is outside [0, {}) and is not ignore_index ({}).",
                                   label[i], i, classes, ignore_index));
    ++counted;
  }
  return counted;
}

constexpr int kLanes = 16;  // independent sums: the compiler makes vectors of them

INFEED_CLONES float largest_of(const float* in, std::int64_t n) {
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, in[0]);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] = in[i + k] > lanes[k] ? in[i + k] : lanes[k];
  }
  float largest = in[0];
  for (; i < n; ++i) largest = in[i] > largest ? in[i] : largest;
  for (const float lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

// Sum of a b, or of a where b is null.
INFEED_CLONES float sum_of_products(const float* a, const float* b, std::int64_t n) {
  float lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int k = 0; k < kLanes; ++k) lanes[k] += b == nullptr ? a[i + k] : a[i + k] * b[i + k];
  }
  float total = 0.0f;
  for (; i < n; ++i) total += b == nullptr ? a[i] : a[i] * b[i];
  for (const float lane : lanes) total += lane;
  return total;
}

INFEED_CLONES void exp_of_shifted(float* out, const float* in, std::int64_t n, float shift) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = fast::exp(in[i] - shift);
}

// Sum of exp(in - shift), which goes to `out` if there is one.
float sum_of_exp(float* out, const float* in, std::int64_t n, float shift) {
  constexpr std::int64_t kPiece = 512;
  float piece[kPiece];
  float total = 0.0f;
  for (std::int64_t i = 0; i < n; i += kPiece) {
    const std::int64_t count = std::min(kPiece, n - i);
    float* const to = out == nullptr ? piece : out + i;
    exp_of_shifted(to, in + i, count, shift);
    total += sum_of_products(to, nullptr, count);
  }
  return total;
}

// out = scale (exp(in) - shift)
INFEED_CLONES void exp_row(float* out, const float* in, std::int64_t n, float shift, float scale) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < n; ++i) out[i] = (fast::exp(in[i]) - shift) * scale;
}

}  // namespace

Tensor log_softmax(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const std::int64_t n = x.size(-1);
  each_row(x, [&, from = x.data<float>(), to = y.data<float>()](std::int64_t row) {
    const float* const in = from + row * n;
    const float largest = largest_of(in, n);
    const float shift = largest + std::log(sum_of_exp(nullptr, in, n, largest));
    for (std::int64_t i = 0; i < n; ++i) to[row * n + i] = in[i] - shift;
  });
  return y;
}

Tensor softmax(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const std::int64_t n = x.size(-1);
  each_row(x, [&, from = x.data<float>(), to = y.data<float>()](std::int64_t row) {
    const float* const in = from + row * n;
    float* const out = to + row * n;
    const float scale = 1.0f / sum_of_exp(out, in, n, largest_of(in, n));
    for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
  });
  return y;
}

Tensor softmax_backward(const Tensor& grad, const Tensor& y) {
  Tensor x_grad = Tensor::empty(y.shape());
  const std::int64_t n = y.size(-1);
  each_row(y, [&, g = grad.data<float>(), p = y.data<float>(), to = x_grad.data<float>()](std::int64_t row) {
    const float dot = sum_of_products(g + row * n, p + row * n, n);
#pragma GCC ivdep
    for (std::int64_t i = row * n; i < (row + 1) * n; ++i) to[i] = p[i] * (g[i] - dot);
  });
  return x_grad;
}

Tensor log_softmax_backward(const Tensor& grad, const Tensor& y) {
  Tensor x_grad = Tensor::empty(y.shape());
  const std::int64_t n = y.size(-1);
  each_row(y, [&, g = grad.data<float>(), logp = y.data<float>(), to = x_grad.data<float>()](std::int64_t row) {
    const float total = sum_of_products(g + row * n, nullptr, n);
    exp_row(to + row * n, logp + row * n, n, 0.0f, total);
#pragma GCC ivdep
    for (std::int64_t i = row * n; i < (row + 1) * n; ++i) to[i] = g[i] - to[i];
  });
  return x_grad;
}

Tensor cross_entropy(const Tensor& log_probs, const Tensor& labels, const CrossEntropySpec& spec) {
  const std::int64_t classes = log_probs.size(1);
  const std::int64_t counted = count_labels(labels, classes, spec.ignore_index);
  const float* const logp = log_probs.data<float>();
  const auto* const label = labels.data<std::int64_t>();
  double picked = 0.0;
  double all = 0.0;
  for (std::int64_t i = 0; i < labels.numel(); ++i) {
    if (label[i] == spec.ignore_index) continue;
    picked -= static_cast<double>(logp[i * classes + label[i]]);
    if (spec.label_smoothing == 0.0) continue;
    for (std::int64_t c = 0; c < classes; ++c) all -= static_cast<double>(logp[i * classes + c]);
  }
  const double smoothing = spec.label_smoothing;
  const double total = (1.0 - smoothing) * picked + smoothing / static_cast<double>(classes) * all;
  return Tensor::full({}, total / static_cast<double>(counted));  // no row counts: NaN, as in PyTorch
}

Tensor cross_entropy_backward(float grad, const Tensor& log_probs, const Tensor& labels, const CrossEntropySpec& spec) {
  Tensor x_grad = Tensor::empty(log_probs.shape());
  const std::int64_t classes = log_probs.size(1);
  const auto* const label = labels.data<std::int64_t>();
  const auto counted = count_labels(labels, classes, spec.ignore_index);
  const float scale = grad / static_cast<float>(counted);
  const auto everywhere = static_cast<float>(spec.label_smoothing / static_cast<double>(classes));
  each_row(log_probs, [&, logp = log_probs.data<float>(), to = x_grad.data<float>()](std::int64_t i) {
    float* const out = to + i * classes;
    if (label[i] == spec.ignore_index) {
      std::fill(out, out + classes, 0.0f);
      return;
    }
    exp_row(out, logp + i * classes, classes, everywhere, scale);
    out[label[i]] -= static_cast<float>(1.0 - spec.label_smoothing) * scale;
  });
  return x_grad;
}

}  // namespace infeed::kernels
