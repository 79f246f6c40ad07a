#pragma once
/// Convolution layers (cross-correlations, as in PyTorch). Each begins within +-1 / sqrt(taps of one output).

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

struct Conv1dOptions {
  std::int64_t in_channels;
  std::int64_t out_channels;
  std::int64_t kernel_size;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

/// [N, C, L] to [N, O, L']; L' = (L + 2 padding - dilation (kernel_size - 1) - 1) / stride + 1.
class INFEED_API Conv1d : public Module {
 public:
  explicit Conv1d(const Conv1dOptions& options);
  [[nodiscard]] Tensor forward(const Tensor& x) override;

  Tensor weight;  ///< [out_channels, in_channels / groups, k]
  Tensor bias;    ///< [out_channels], or undefined

 private:
  Conv1dOptions options_;
};

struct Conv2dOptions {
  std::int64_t in_channels;
  std::int64_t out_channels;
  Size2 kernel_size;
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

/// [N, C, H, W] to [N, O, H', W']; sizes as Conv1d's.
class INFEED_API Conv2d : public Module {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  [[nodiscard]] Tensor forward(const Tensor& x) override { return forward(x, Activation::kNone); }
  [[nodiscard]] Tensor forward(const Tensor& x, Activation activation) const;
  [[nodiscard]] const Conv2dOptions& options() const noexcept { return options_; }

  Tensor weight;  ///< [out_channels, in_channels / groups, kh, kw]
  Tensor bias;    ///< [out_channels], or undefined

 private:
  Conv2dOptions options_;
};

struct ConvTranspose2dOptions {
  std::int64_t in_channels;
  std::int64_t out_channels;
  Size2 kernel_size;
  Size2 stride = 1;
  Size2 padding = 0;
  Size2 output_padding = 0;
  Size2 dilation = 1;
  std::int64_t groups = 1;
  bool bias = true;
};

/// The gradient of a Conv2d as a layer: H' = (H - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1.
class INFEED_API ConvTranspose2d : public Module {
 public:
  explicit ConvTranspose2d(const ConvTranspose2dOptions& options);
  [[nodiscard]] Tensor forward(const Tensor& x) override;

  Tensor weight;  ///< [in_channels, out_channels / groups, kh, kw]
  Tensor bias;    ///< [out_channels], or undefined

 private:
  ConvTranspose2dOptions options_;
};

}  // namespace infeed::nn
