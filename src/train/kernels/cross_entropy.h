#pragma once
/// The cross entropy of class labels.

#include <cstdint>

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

struct CrossEntropySpec {
  std::int64_t ignore_index;
  double label_smoothing;
};

struct CrossEntropyResult {
  Tensor loss;       ///< []
  Tensor normalise;  ///< [rows, 2]: max and 1 / sum(exp(x - max))
};

/// Mean over the rows that count of -log softmax(x)[label]. x: float32 [rows, classes], contiguous; labels: int64
/// [rows]. Throws IndexError for a label outside [0, classes) that is not ignore_index.
[[nodiscard]] CrossEntropyResult cross_entropy(const Tensor& x, const Tensor& labels, const CrossEntropySpec& spec);
/// (softmax(x) - target) g / rows that count.
[[nodiscard]] Tensor cross_entropy_backward(const Tensor& g, const Tensor& x, const Tensor& normalise,
                                            const Tensor& labels, const CrossEntropySpec& spec);

}  // namespace infeed::kernels
