#include "train/kernels/cross_entropy.h"

#include <fmt/format.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "infeed/base/error.h"
#include "train/kernels/on_device.h"
#include "train/kernels/rows.h"

namespace infeed::kernels {
namespace {

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

// Of the row's softmax.
struct Normalise {
  float largest;
  float sum;
};

INFEED_CLONES Normalise normalise_row(const float* x, std::int64_t n) {
  const float largest = largest_of(x, n);
  return {largest, sum_of_exp(x, n, largest)};
}

// Sum of x - shift.
INFEED_CLONES float sum_shifted(const float* x, std::int64_t n, float shift) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] - shift;
  return sum;
}

// out = scale (softmax(x) - shift)
INFEED_CLONES void gradient_row(float* out, const float* x, std::int64_t n, float largest, float inverse_sum,
                                float shift, float scale) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = (fast::exp_of_negative(x[i] - largest) * inverse_sum - shift) * scale;
}

}  // namespace

CrossEntropyResult cross_entropy(const Tensor& x, const Tensor& labels, const CrossEntropySpec& spec) {
  if (is_on_device(x)) return on_device::cross_entropy(x, labels, spec);
  const std::int64_t rows = x.size(0);
  const std::int64_t classes = x.size(1);
  const std::int64_t counted = count_labels(labels, classes, spec.ignore_index);
  Tensor normalise = Tensor::empty({rows, 2});
  std::vector<double> losses(static_cast<std::size_t>(rows));
  auto* const of_rows = normalise.data<float>();
  each_row(rows, classes, [&, in = x.data<float>(), label = labels.data<std::int64_t>()](std::int64_t i) {
    const float* const row = in + i * classes;
    const auto [largest, sum] = normalise_row(row, classes);
    of_rows[2 * i] = largest;
    of_rows[2 * i + 1] = 1.0f / sum;
    if (label[i] == spec.ignore_index) return;
    const double log_sum = std::log(static_cast<double>(sum));
    double loss = log_sum - static_cast<double>(row[label[i]] - largest);
    if (spec.label_smoothing != 0.0) {
      const double all =
          log_sum - static_cast<double>(sum_shifted(row, classes, largest)) / static_cast<double>(classes);
      loss += spec.label_smoothing * (all - loss);
    }
    losses[static_cast<std::size_t>(i)] = loss;
  });
  const double total = std::accumulate(losses.begin(), losses.end(), 0.0);
  return {Tensor::full({}, total / static_cast<double>(counted)), normalise};  // no row counts: NaN, as in PyTorch
}

Tensor cross_entropy_backward(const Tensor& g, const Tensor& x, const Tensor& normalise, const Tensor& labels,
                              const CrossEntropySpec& spec) {
  if (is_on_device(x)) return on_device::cross_entropy_backward(g, x, normalise, labels, spec);
  Tensor x_grad = Tensor::empty(x.shape());
  const std::int64_t classes = x.size(1);
  const float scale = g.item<float>() / static_cast<float>(count_labels(labels, classes, spec.ignore_index));
  const auto everywhere = static_cast<float>(spec.label_smoothing / static_cast<double>(classes));
  auto* const gradient = x_grad.data<float>();
  each_row(x.size(0), classes,
           [&, in = x.data<float>(), of_rows = normalise.data<float>(),
            label = labels.data<std::int64_t>()](std::int64_t i) {
             float* const out = gradient + i * classes;
             if (label[i] == spec.ignore_index) {
               std::fill(out, out + classes, 0.0f);
               return;
             }
             gradient_row(out, in + i * classes, classes, of_rows[2 * i], of_rows[2 * i + 1], everywhere, scale);
             out[label[i]] -= static_cast<float>(1.0 - spec.label_smoothing) * scale;
           });
  return x_grad;
}

}  // namespace infeed::kernels
