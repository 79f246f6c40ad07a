#pragma once
/// RMSprop.

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct INFEED_API RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< of the mean squared gradient
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;  ///< subtract the square of the mean gradient
  bool maximize = false;
};

struct INFEED_API RMSpropState {
  double step = 0.0;
  Tensor square_avg;
  Tensor momentum_buffer;  ///< with momentum only
  Tensor grad_avg;         ///< centered only
};

extern template class GroupedOptimizer<RMSpropOptions, RMSpropState>;

/// v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps), through a momentum buffer if asked. All parameters of a
/// group in one pass.
class INFEED_API RMSprop final : public GroupedOptimizer<RMSpropOptions, RMSpropState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

  void step() override;
};

}  // namespace infeed::optim
