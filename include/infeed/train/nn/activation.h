#pragma once
/// Layers without parameters.

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

class INFEED_API ReLU : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return relu(x); }
};

/// [N, ...] to [N, product], or any other range of dimensions.
class INFEED_API Flatten : public Module {
 public:
  explicit Flatten(int start_dim = 1, int end_dim = -1) : start_dim_(start_dim), end_dim_(end_dim) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return x.flatten(start_dim_, end_dim_); }

 private:
  int start_dim_, end_dim_;
};

}  // namespace infeed::nn
