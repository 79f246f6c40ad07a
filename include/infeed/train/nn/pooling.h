#pragma once
/// Pooling layers over [N, C, H, W] or [C, H, W]; options as in functional.h. Those over [N, C, L] take widths.

#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

/// Largest value of each window.
class INFEED_API MaxPool2d : public Module {
 public:
  explicit MaxPool2d(Size2 kernel_size, const PoolSpec& spec = {}) : kernel_size_(kernel_size), spec_(spec) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return max_pool2d(x, kernel_size_, spec_); }

 private:
  Size2 kernel_size_;
  PoolSpec spec_;
};

/// Mean of each window.
class INFEED_API AvgPool2d : public Module {
 public:
  explicit AvgPool2d(Size2 kernel_size, const PoolSpec& spec = {}) : kernel_size_(kernel_size), spec_(spec) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return avg_pool2d(x, kernel_size_, spec_); }

 private:
  Size2 kernel_size_;
  PoolSpec spec_;
};

class INFEED_API MaxPool1d : public Module {
 public:
  explicit MaxPool1d(std::int64_t kernel_size, const PoolSpec& spec = {}) : kernel_size_(kernel_size), spec_(spec) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return max_pool1d(x, kernel_size_, spec_); }

 private:
  std::int64_t kernel_size_;
  PoolSpec spec_;
};

class INFEED_API AvgPool1d : public Module {
 public:
  explicit AvgPool1d(std::int64_t kernel_size, const PoolSpec& spec = {}) : kernel_size_(kernel_size), spec_(spec) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return avg_pool1d(x, kernel_size_, spec_); }

 private:
  std::int64_t kernel_size_;
  PoolSpec spec_;
};

/// Means over as many windows as asked for; 1 is global average pooling.
class INFEED_API AdaptiveAvgPool2d : public Module {
 public:
  explicit AdaptiveAvgPool2d(Size2 output_size) : output_size_(output_size) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return adaptive_avg_pool2d(x, output_size_); }

 private:
  Size2 output_size_;
};

/// Largest values of as many windows as asked for.
class INFEED_API AdaptiveMaxPool2d : public Module {
 public:
  explicit AdaptiveMaxPool2d(Size2 output_size) : output_size_(output_size) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return adaptive_max_pool2d(x, output_size_).values; }

 private:
  Size2 output_size_;
};

}  // namespace infeed::nn
