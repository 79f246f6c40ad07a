#pragma once
/// One pass over parameter, gradient and momentum.

#include "infeed/train/tensor/tensor.h"

namespace infeed::kernels {

struct SgdStep {
  float lr;
  float momentum;
  float dampening;
  float weight_decay;
  bool nesterov;
  bool first;  ///< the momentum buffer has no value yet: it takes the gradient
  bool maximize;
};

/// float32, one shape; `grad` may lie otherwise than `param`. `buffer` is undefined where momentum is 0, else lies as
/// `param`.
void sgd_step(const Tensor& param, const Tensor& grad, const Tensor& buffer, const SgdStep& step);

}  // namespace infeed::kernels
