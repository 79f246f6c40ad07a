#pragma once
/// Softmax and its kin along the last dimension. x: float32 [.., n], contiguous.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// exp(x - max) / sum, or its logarithm.
[[nodiscard]] Tensor softmax(const Tensor& x);
[[nodiscard]] Tensor log_softmax(const Tensor& x);
/// From y = softmax(x): y * (g - sum(g * y)).
[[nodiscard]] Tensor softmax_backward(const Tensor& g, const Tensor& y);
/// From y = log_softmax(x): g - exp(y) * sum(g).
[[nodiscard]] Tensor log_softmax_backward(const Tensor& g, const Tensor& y);

/// log(sum(exp(x))): [.., 1].
[[nodiscard]] Tensor logsumexp(const Tensor& x);
/// From y = logsumexp(x), g as y: g * exp(x - y).
[[nodiscard]] Tensor logsumexp_backward(const Tensor& g, const Tensor& x, const Tensor& y);

}  // namespace infeed::kernels
