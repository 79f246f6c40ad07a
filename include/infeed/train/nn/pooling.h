#pragma once
/// Pooling layers.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

/// Largest value of each window. `stride` 0: the kernel's size.
class INFEED_API MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Size2 kernel_size, Size2 stride = 0, Size2 padding = 0)
      : kernel_size_(kernel_size), stride_(stride), padding_(padding) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_size_, {.stride = stride_, .padding = padding_}); }

 private:
  Size2 kernel_size_, stride_, padding_;
};

/// Means over as many windows as asked for; 1 is global average pooling.
class INFEED_API AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2 output_size) : output_size_(output_size) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, output_size_); }

 private:
  Size2 output_size_;
};

}  // namespace infeed::nn
