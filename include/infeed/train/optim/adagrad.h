#pragma once
/// Adagrad.

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct INFEED_API AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0.0;  ///< step t takes lr / (1 + (t - 1) lr_decay)
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double eps = 1e-10;
  bool maximize = false;
};

struct INFEED_API AdagradState {
  double step = 0.0;
  Tensor sum;
};

extern template class GroupedOptimizer<AdagradOptions, AdagradState>;

/// s += g^2; p -= lr g / (sqrt(s) + eps). All parameters of a group in one pass.
class INFEED_API Adagrad final : public GroupedOptimizer<AdagradOptions, AdagradState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

  void step() override;
};

}  // namespace infeed::optim
