#pragma once
/// Layers and losses as functions of their parameters. float32 and, where the CPU has it, bfloat16 run on oneDNN or own
/// kernels; other dtypes take a slower way in plain operations. All are differentiable, twice where not said otherwise.

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "infeed/base/export.h"
#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/reduction.h"
#include "infeed/train/tensor/random.h"
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

struct ConvTranspose2dSpec {
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
};

struct PoolSpec {
  Size2 stride = 0;  ///< 0: the kernel's size
  Size2 padding = 0;
  Size2 dilation = 1;                                 ///< of max_pool only
  bool ceil_mode = false;                             ///< a last window may reach beyond the padding
  bool count_include_pad = true;                      ///< avg_pool: padding counts as zeros
  std::optional<std::int64_t> divisor_override = {};  ///< avg_pool: instead of the window's size
};

struct BatchNormSpec {
  bool training = false;
  double momentum = 0.1;
  double eps = 1e-5;
  Activation activation = Activation::kNone;
};

/// What becomes of the losses of single elements.
enum class Reduction : std::uint8_t { kMean, kSum, kNone };

struct CrossEntropySpec {
  std::int64_t ignore_index = -100;
  double label_smoothing = 0.0;  ///< in [0, 1]
  Tensor weight;                 ///< [classes], or undefined
  Reduction reduction = Reduction::kMean;
};

// Images are [N, C, H, W] or [C, H, W]; float32 results are channels last, inputs in another format are copied once.

/// weight: [O, C / groups, kh, kw]; bias: [O] or undefined.
[[nodiscard]] INFEED_API Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                       const Conv2dSpec& spec = {});
/// x: [N, C, L] or [C, L]; weight: [O, C / groups, k]. The widths of `spec` count.
[[nodiscard]] INFEED_API Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                       const Conv2dSpec& spec = {});
/// The gradient of conv2d as a layer. weight: [C, O / groups, kh, kw].
[[nodiscard]] INFEED_API Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                                 const ConvTranspose2dSpec& spec = {});
/// x: [.., in]; weight: [out, in]; bias: [out] or undefined.
[[nodiscard]] INFEED_API Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias = {},
                                       Activation activation = Activation::kNone);

/// x: [N, C, ..]; all others: [C]. Training normalises by the batch and moves running_mean and running_var (either may
/// be undefined; the variance unbiased); otherwise they are what is used. weight and bias may be undefined: 1 and 0.
[[nodiscard]] INFEED_API Tensor batch_norm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                                           const Tensor& weight, const Tensor& bias, const BatchNormSpec& spec);
/// Over the last dimensions, `shape`; (x - mean) / sqrt(var + eps) * weight + bias. weight, bias: `shape` or undefined.
[[nodiscard]] INFEED_API Tensor layer_norm(const Tensor& x, const Shape& shape, const Tensor& weight = {},
                                           const Tensor& bias = {}, double eps = 1e-5);
/// The same over each of `groups` parts of the channels. weight, bias: [C] or undefined.
[[nodiscard]] INFEED_API Tensor group_norm(const Tensor& x, std::int64_t groups, const Tensor& weight = {},
                                           const Tensor& bias = {}, double eps = 1e-5);

/// Largest value of each window. Once differentiable.
[[nodiscard]] INFEED_API Tensor max_pool2d(const Tensor& x, Size2 kernel, const PoolSpec& spec = {});
/// Also where they are, counted through each image: row * W + column. In plain operations: slower.
[[nodiscard]] INFEED_API ValuesAndIndices max_pool2d_with_indices(const Tensor& x, Size2 kernel,
                                                                  const PoolSpec& spec = {});
[[nodiscard]] INFEED_API Tensor avg_pool2d(const Tensor& x, Size2 kernel, const PoolSpec& spec = {});
/// Means or largest values of `output` windows that cover x as evenly as its size allows: window i begins at
/// floor(i size / output) and ends before ceil((i + 1) size / output).
[[nodiscard]] INFEED_API Tensor adaptive_avg_pool2d(const Tensor& x, Size2 output);
[[nodiscard]] INFEED_API ValuesAndIndices adaptive_max_pool2d(const Tensor& x, Size2 output);

// The same along [N, C, L] or [C, L]. The widths of `spec` count.
[[nodiscard]] INFEED_API Tensor max_pool1d(const Tensor& x, std::int64_t kernel, const PoolSpec& spec = {});
[[nodiscard]] INFEED_API ValuesAndIndices max_pool1d_with_indices(const Tensor& x, std::int64_t kernel,
                                                                  const PoolSpec& spec = {});
[[nodiscard]] INFEED_API Tensor avg_pool1d(const Tensor& x, std::int64_t kernel, const PoolSpec& spec = {});
[[nodiscard]] INFEED_API Tensor adaptive_avg_pool1d(const Tensor& x, std::int64_t output);
[[nodiscard]] INFEED_API ValuesAndIndices adaptive_max_pool1d(const Tensor& x, std::int64_t output);

[[nodiscard]] INFEED_API Tensor softmax(const Tensor& x, int dim,
                                        std::optional<DType> dtype = {});  ///< y (g - sum(g y))
[[nodiscard]] INFEED_API Tensor log_softmax(const Tensor& x, int dim,
                                            std::optional<DType> dtype = {});  ///< g - softmax sum(g)

/// Zero with probability p, else x / (1 - p), while training.
[[nodiscard]] INFEED_API Tensor dropout(const Tensor& x, double p = 0.5, bool training = true,
                                        Generator* generator = nullptr);
/// Rows of weight [n, d] by indices of any shape. Rows at padding_index (negative: none) get no gradient.
[[nodiscard]] INFEED_API Tensor embedding(const Tensor& indices, const Tensor& weight, std::int64_t padding_index = -1);

struct AttentionSpec {
  double dropout = 0.0;
  bool is_causal = false;       ///< a query sees keys up to its own place
  std::optional<double> scale;  ///< 1 / sqrt(E) unless given
};
/// softmax(q k^T scale + mask) v, for q [.., L, E], k [.., S, E], v [.., S, Ev]. mask: bool (true takes part) or added.
[[nodiscard]] INFEED_API Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                                                             const Tensor& mask = {}, const AttentionSpec& spec = {});

// Losses. x: what the model gives; t: the target.

/// x: logits [N, C, ..] or [C]; t: int64 classes [N, ..], or probabilities of x's shape. Elements labelled ignore_index
/// do not count. IndexError for a class out of range.
[[nodiscard]] INFEED_API Tensor cross_entropy(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec = {});
/// The same from log probabilities; no smoothing.
[[nodiscard]] INFEED_API Tensor nll_loss(const Tensor& x, const Tensor& t, const CrossEntropySpec& spec = {});
/// -(t log x + (1 - t) log(1 - x)), logarithms not below -100.
[[nodiscard]] INFEED_API Tensor binary_cross_entropy(const Tensor& x, const Tensor& t, const Tensor& weight = {},
                                                     Reduction reduction = Reduction::kMean);
/// The same of sigmoid(x), without overflow.
[[nodiscard]] INFEED_API Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& t,
                                                                 const Tensor& weight = {},
                                                                 const Tensor& pos_weight = {},
                                                                 Reduction reduction = Reduction::kMean);
[[nodiscard]] INFEED_API Tensor mse_loss(const Tensor& x, const Tensor& t, Reduction reduction = Reduction::kMean);
[[nodiscard]] INFEED_API Tensor l1_loss(const Tensor& x, const Tensor& t, Reduction reduction = Reduction::kMean);
/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2.
[[nodiscard]] INFEED_API Tensor smooth_l1_loss(const Tensor& x, const Tensor& t, Reduction reduction = Reduction::kMean,
                                               double beta = 1.0);
[[nodiscard]] INFEED_API Tensor huber_loss(const Tensor& x, const Tensor& t, Reduction reduction = Reduction::kMean,
                                           double delta = 1.0);
/// t (log t - x) for log probabilities x; `log_target`: t is one, too. `batch_mean` divides the sum by x's first size.
[[nodiscard]] INFEED_API Tensor kl_div(const Tensor& x, const Tensor& t, Reduction reduction = Reduction::kMean,
                                       bool log_target = false, bool batch_mean = false);

}  // namespace infeed::nn
