#pragma once
/// Convolution layer.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

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

/// 2-D convolution (cross-correlation, as in PyTorch) of [N, C, H, W].
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

}  // namespace infeed::nn
