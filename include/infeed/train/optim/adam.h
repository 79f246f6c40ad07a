#pragma once
/// Adam and AdamW.

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct INFEED_API AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;    ///< of the mean gradient
  double beta2 = 0.999;  ///< of the mean squared gradient
  double eps = 1e-8;     ///< added to the root of the latter
  double weight_decay = 0.0;
  bool amsgrad = false;    ///< divide by the largest mean square so far
  bool decoupled = false;  ///< AdamW: shrink the parameter instead of adding to its gradient
  bool maximize = false;
};
/// AdamW's: the same but for weight_decay, which is decoupled and not 0 by default.
struct INFEED_API AdamWOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};
/// What makes Adam an AdamW: `Adam(net.parameters(), adamw_options({.lr = 3e-4}))`.
[[nodiscard]] inline AdamOptions adamw_options(const AdamWOptions& options = {}) {
  return {.lr = options.lr,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .amsgrad = options.amsgrad,
          .decoupled = true,
          .maximize = options.maximize};
}

struct INFEED_API AdamState {
  double step = 0.0;
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor max_exp_avg_sq;  ///< amsgrad only
};

extern template class GroupedOptimizer<AdamOptions, AdamState>;

/// g = grad + weight_decay p (or p *= 1 - lr weight_decay, decoupled); m = beta1 m + (1 - beta1) g;
/// v = beta2 v + (1 - beta2) g^2; p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
/// All parameters of a group in one pass.
class INFEED_API Adam final : public GroupedOptimizer<AdamOptions, AdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

  void step() override;
};

}  // namespace infeed::optim
