#pragma once
/// Adam and AdamW.

#include <unordered_map>
#include <vector>

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;         ///< of the mean gradient
  double beta2 = 0.999;       ///< of the mean squared gradient
  double eps = 1e-8;          ///< added to the root of the latter
  double weight_decay = 0.0;  ///< AdamW's default: 1e-2
  bool amsgrad = false;       ///< divide by the largest mean square so far
  bool decoupled = false;     ///< AdamW: shrink the parameter instead of adding to its gradient
  bool maximize = false;
};
[[nodiscard]] inline AdamOptions adamw_options(AdamOptions options = {.weight_decay = 1e-2}) {
  options.decoupled = true;
  return options;
}

/// g = grad + weight_decay p (or p *= 1 - lr weight_decay, decoupled); m = beta1 m + (1 - beta1) g;
/// v = beta2 v + (1 - beta2) g^2; p -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps).
/// All parameters of a group in one pass. Errors: ConfigError for options out of range or an empty list.
class INFEED_API Adam final : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    AdamOptions options;
  };
  struct State {
    double step = 0.0;
    Tensor exp_avg;
    Tensor exp_avg_sq;
    Tensor max_exp_avg_sq;  ///< amsgrad only
  };

  explicit Adam(std::vector<Tensor> params, const AdamOptions& options = {});
  explicit Adam(std::vector<Group> groups);

  void step() override;

  /// Groups in order: options may be changed and lists edited between steps.
  [[nodiscard]] std::vector<Group>& param_groups() noexcept { return groups_; }
  void add_param_group(Group group);
  /// What is kept of a parameter; empty before its first step.
  [[nodiscard]] State& state(const Tensor& param) { return state_[param.id()]; }

 protected:
  [[nodiscard]] std::vector<Tensor> parameters() const override;

 private:
  std::vector<Group> groups_;
  std::unordered_map<const void*, State> state_;
};

}  // namespace infeed::optim
