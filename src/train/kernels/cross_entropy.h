#pragma once
/// Softmax over the last dimension, and the cross entropy of class labels.

#include <cstdint>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

/// x: float32 [.., classes], contiguous. exp(x - max) / sum, or its logarithm.
[[nodiscard]] Tensor softmax(const Tensor& x);
[[nodiscard]] Tensor log_softmax(const Tensor& x);
/// From y = softmax(x): y * (grad - sum(grad * y)).
[[nodiscard]] Tensor softmax_backward(const Tensor& grad, const Tensor& y);
/// From y = log_softmax(x): grad - exp(y) * sum(grad).
[[nodiscard]] Tensor log_softmax_backward(const Tensor& grad, const Tensor& y);

struct CrossEntropySpec {
  std::int64_t ignore_index;
  double label_smoothing;
};

/// Mean over the rows that count of -log softmax(x)[label]; [] . log_probs: [rows, classes] from log_softmax; labels:
/// int64 [rows]. Throws IndexError for a label outside [0, classes) that is not ignore_index.
[[nodiscard]] Tensor cross_entropy(const Tensor& log_probs, const Tensor& labels, const CrossEntropySpec& spec);
/// Gradient of the logits.
[[nodiscard]] Tensor cross_entropy_backward(float grad, const Tensor& log_probs, const Tensor& labels,
                                            const CrossEntropySpec& spec);

}  // namespace infeed::kernels
