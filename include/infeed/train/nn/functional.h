#pragma once
/// Layers as functions of their parameters.

#include <array>
#include <cstdint>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::nn {

/// Height and width; one number serves both.
struct Size2 {
  Size2(std::int64_t both) : height(both), width(both) {}  // NOLINT: implicit on purpose, as in PyTorch
  Size2(std::int64_t h, std::int64_t w) : height(h), width(w) {}
  std::int64_t height;
  std::int64_t width;
};

/// What is applied to a layer's output in the same pass.
enum class Activation : std::uint8_t { kNone, kRelu };

struct Conv2dSpec {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
  Activation activation = Activation::kNone;
};

struct BatchNormSpec {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
  Activation activation = Activation::kNone;
};

struct CrossEntropySpec {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;  ///< in [0, 1]
};

// Images are float32 [N, C, H, W]; results are channels last, inputs in another format are copied once.

/// weight: [O, C / groups, kh, kw]; bias: [O] or undefined.
[[nodiscard]] INFEED_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                       const Conv2dSpec& spec = {});
/// x: [.., in]; weight: [out, in]; bias: [out] or undefined.
[[nodiscard]] INFEED_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                       Activation activation = Activation::kNone);
/// All but x: [C]. Training normalises by the batch and moves running_mean and running_var (either may be undefined);
/// otherwise they are what is used.
[[nodiscard]] INFEED_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                                           const Tensor& weight, const Tensor& bias, const BatchNormSpec& spec);
/// `stride` 0: the kernel's size.
[[nodiscard]] INFEED_API Tensor max_pool2d(const Tensor& x, Size2 kernel, Size2 stride = 0, Size2 padding = 0);
[[nodiscard]] INFEED_API Tensor avg_pool2d(const Tensor& x, Size2 kernel, Size2 stride = 0);
/// Means of `output` windows that cover x as evenly as its size allows.
[[nodiscard]] INFEED_API Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output);

[[nodiscard]] INFEED_API Tensor softmax(const Tensor& x, int dim);
[[nodiscard]] INFEED_API Tensor log_softmax(const Tensor& x, int dim);
/// Mean negative log likelihood of int64 `labels` [N] under softmax(`logits` [N, classes]); rows labelled ignore_index
/// do not count. Throws IndexError for a label out of range.
[[nodiscard]] INFEED_API Tensor cross_entropy(const Tensor& logits, const Tensor& labels,
                                              const CrossEntropySpec& spec = {});

}  // namespace infeed::nn
