#include "train/kernels/softmax.h"

#include <cmath>

#include "train/kernels/on_device.h"
#include "train/kernels/rows.h"

namespace infeed::kernels {
namespace {

INFEED_CLONES void softmax_row(float* out, const float* x, std::int64_t n) {
  const float scale = 1.0f / exp_and_sum(out, x, n, largest_of(x, n));
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] *= scale;
}

INFEED_CLONES void log_softmax_row(float* out, const float* x, std::int64_t n) {
  const float largest = largest_of(x, n);
  const float log_sum = std::log(sum_of_exp(x, n, largest));
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = (x[i] - largest) - log_sum;
}

INFEED_CLONES void softmax_backward_row(float* out, const float* g, const float* y, std::int64_t n) {
  float dot = 0.0f;
#pragma omp simd reduction(+ : dot)
  for (std::int64_t i = 0; i < n; ++i) dot += g[i] * y[i];
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = y[i] * (g[i] - dot);
}

INFEED_CLONES void log_softmax_backward_row(float* out, const float* g, const float* y, std::int64_t n) {
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += g[i];
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = g[i] - fast::exp_of_negative(y[i]) * sum;
}

INFEED_CLONES float logsumexp_row(const float* x, std::int64_t n) {
  const float largest = largest_of(x, n);
  const float shift = std::isinf(largest) ? 0.0f : largest;
  float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < n; ++i) sum += fast::exp(x[i] - shift);
  return std::log(sum) + shift;
}

INFEED_CLONES void logsumexp_backward_row(float* out, const float* x, std::int64_t n, float g, float y) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) out[i] = g * fast::exp(x[i] - y);
}

}  // namespace

Tensor softmax(const Tensor& x) {
  if (is_on_device(x)) return on_device::along_rows("softmax", &infeed_kernel_api::softmax, x);
  Tensor y = Tensor::empty(x.shape());
  const std::int64_t n = x.size(-1);
  each_row(x.numel() / n, n, [n, in = x.data<float>(), out = y.data<float>()](std::int64_t row) {
    softmax_row(out + row * n, in + row * n, n);
  });
  return y;
}

Tensor log_softmax(const Tensor& x) {
  if (is_on_device(x)) return on_device::along_rows("log_softmax", &infeed_kernel_api::log_softmax, x);
  Tensor y = Tensor::empty(x.shape());
  const std::int64_t n = x.size(-1);
  each_row(x.numel() / n, n, [n, in = x.data<float>(), out = y.data<float>()](std::int64_t row) {
    log_softmax_row(out + row * n, in + row * n, n);
  });
  return y;
}

Tensor softmax_backward(const Tensor& g, const Tensor& y) {
  if (is_on_device(y)) return on_device::along_rows("softmax_backward", &infeed_kernel_api::softmax_backward, g, y);
  Tensor x_grad = Tensor::empty(y.shape());
  const std::int64_t n = y.size(-1);
  each_row(y.numel() / n, n,
           [n, up = g.data<float>(), p = y.data<float>(), out = x_grad.data<float>()](std::int64_t row) {
             softmax_backward_row(out + row * n, up + row * n, p + row * n, n);
           });
  return x_grad;
}

Tensor log_softmax_backward(const Tensor& g, const Tensor& y) {
  if (is_on_device(y))
    return on_device::along_rows("log_softmax_backward", &infeed_kernel_api::log_softmax_backward, g, y);
  Tensor x_grad = Tensor::empty(y.shape());
  const std::int64_t n = y.size(-1);
  each_row(y.numel() / n, n,
           [n, up = g.data<float>(), logp = y.data<float>(), out = x_grad.data<float>()](std::int64_t row) {
             log_softmax_backward_row(out + row * n, up + row * n, logp + row * n, n);
           });
  return x_grad;
}

Tensor logsumexp(const Tensor& x) {
  Shape shape = x.shape();
  const std::int64_t n = x.size(-1);
  shape[x.ndim() - 1] = 1;
  Tensor y = Tensor::empty(shape);
  each_row(y.numel(), n, [n, in = x.data<float>(), out = y.data<float>()](std::int64_t row) {
    out[row] = logsumexp_row(in + row * n, n);
  });
  return y;
}

Tensor logsumexp_backward(const Tensor& g, const Tensor& x, const Tensor& y) {
  Tensor x_grad = Tensor::empty(x.shape());
  const std::int64_t n = x.size(-1);
  each_row(y.numel(), n,
           [n, up = g.data<float>(), in = x.data<float>(), sums = y.data<float>(), out = x_grad.data<float>()](
               std::int64_t row) { logsumexp_backward_row(out + row * n, in + row * n, n, up[row], sums[row]); });
  return x_grad;
}

}  // namespace infeed::kernels
