#pragma once
/// Stochastic gradient descent.

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct INFEED_API SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;     ///< must be 0 with nesterov
  double weight_decay = 0.0;  ///< added to the gradient, times the parameter
  bool nesterov = false;      ///< needs momentum
  bool maximize = false;
};

struct INFEED_API SGDState {
  Tensor momentum_buffer;  ///< with momentum only
};

extern template class GroupedOptimizer<SGDOptions, SGDState>;

/// g = grad + weight_decay p; b = momentum b + (1 - dampening) g (the first b is g); p -= lr b, or
/// lr (g + momentum b) with nesterov. All parameters of a group in one pass.
class INFEED_API SGD final : public GroupedOptimizer<SGDOptions, SGDState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

  void step() override;
};

}  // namespace infeed::optim
