#include "train/kernels/cross_entropy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "infeed/base/error.h"
#include "train/kernels/parallel.h"

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

}  // namespace

Tensor log_softmax(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const std::int64_t classes = x.size(-1);
  each_row(x, [&, from = x.data<float>(), to = y.data<float>()](std::int64_t i) {
    const float* const in = from + i * classes;
    const float largest = *std::max_element(in, in + classes);
    double total = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) total += static_cast<double>(std::exp(in[c] - largest));
    const float shift = largest + static_cast<float>(std::log(total));
    for (std::int64_t c = 0; c < classes; ++c) to[i * classes + c] = in[c] - shift;
  });
  return y;
}

Tensor softmax(const Tensor& x) {
  Tensor y = Tensor::empty(x.shape());
  const std::int64_t classes = x.size(-1);
  each_row(x, [&, from = x.data<float>(), to = y.data<float>()](std::int64_t i) {
    const float* const in = from + i * classes;
    float* const out = to + i * classes;
    const float largest = *std::max_element(in, in + classes);
    double total = 0.0;
    for (std::int64_t c = 0; c < classes; ++c) total += static_cast<double>(out[c] = std::exp(in[c] - largest));
    const auto scale = static_cast<float>(1.0 / total);
    for (std::int64_t c = 0; c < classes; ++c) out[c] *= scale;
  });
  return y;
}

Tensor softmax_backward(const Tensor& grad, const Tensor& y) {
  Tensor x_grad = Tensor::empty(y.shape());
  const std::int64_t classes = y.size(-1);
  each_row(y, [&, g = grad.data<float>(), p = y.data<float>(), to = x_grad.data<float>()](std::int64_t i) {
    float dot = 0.0f;
    for (std::int64_t c = i * classes; c < (i + 1) * classes; ++c) dot += g[c] * p[c];
    for (std::int64_t c = i * classes; c < (i + 1) * classes; ++c) to[c] = p[c] * (g[c] - dot);
  });
  return x_grad;
}

Tensor log_softmax_backward(const Tensor& grad, const Tensor& y) {
  Tensor x_grad = Tensor::empty(y.shape());
  const std::int64_t classes = y.size(-1);
  each_row(y, [&, g = grad.data<float>(), logp = y.data<float>(), to = x_grad.data<float>()](std::int64_t i) {
    float total = 0.0f;
    for (std::int64_t c = i * classes; c < (i + 1) * classes; ++c) total += g[c];
    for (std::int64_t c = i * classes; c < (i + 1) * classes; ++c) to[c] = g[c] - std::exp(logp[c]) * total;
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
    for (std::int64_t c = 0; c < classes; ++c) out[c] = (std::exp(logp[i * classes + c]) - everywhere) * scale;
    out[label[i]] -= static_cast<float>(1.0 - spec.label_smoothing) * scale;
  });
  return x_grad;
}

}  // namespace infeed::kernels
