#pragma once
/// Layers without parameters: activations, dropout, changes of shape.

#include "infeed/train/autograd/ops.h"
#include "infeed/train/nn/functional.h"
#include "infeed/train/nn/module.h"

namespace infeed::nn {

class INFEED_API Identity : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return x; }
};

/// max(x, 0).
class INFEED_API ReLU : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return relu(x); }
};

/// x Phi(x), Phi the normal distribution's; kTanh approximates it (Hendrycks and Gimpel, 2016).
class INFEED_API GELU : public Module {
 public:
  explicit GELU(GeluKind kind = GeluKind::kErf) : kind_(kind) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return gelu(x, kind_); }

 private:
  GeluKind kind_;
};

/// x sigmoid(x).
class INFEED_API SiLU : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return silu(x); }
};

class INFEED_API Tanh : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return tanh(x); }
};

/// 1 / (1 + exp(-x)).
class INFEED_API Sigmoid : public Module {
 public:
  [[nodiscard]] Tensor forward(const Tensor& x) override { return sigmoid(x); }
};

/// exp(x) / sum(exp(x)) along `dim`.
class INFEED_API Softmax : public Module {
 public:
  explicit Softmax(int dim) : dim_(dim) {}
  [[nodiscard]] Tensor forward(const Tensor& x) override { return softmax(x, dim_); }

 private:
  int dim_;
};

/// In training zero with probability p, else x / (1 - p); x itself in evaluation (Srivastava et al., 2014).
class INFEED_API Dropout : public Module {
 public:
  explicit Dropout(double p = 0.5);  ///< ValueError unless in [0, 1]
  [[nodiscard]] Tensor forward(const Tensor& x) override { return dropout(x, p_, is_training()); }

 private:
  double p_;
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
