#pragma once
/// Adagrad.

#include <unordered_map>
#include <vector>

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0.0;  ///< step t takes lr / (1 + (t - 1) lr_decay)
  double weight_decay = 0.0;
  double initial_accumulator_value = 0.0;
  double eps = 1e-10;
  bool maximize = false;
};

/// s += g^2; p -= lr g / (sqrt(s) + eps). All parameters of a group in one pass.
/// Errors: ConfigError for options out of range or an empty list.
class INFEED_API Adagrad final : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    AdagradOptions options;
  };
  struct State {
    double step = 0.0;
    Tensor sum;
  };

  explicit Adagrad(std::vector<Tensor> params, const AdagradOptions& options = {});
  explicit Adagrad(std::vector<Group> groups);

  void step() override;

  /// Groups in order: options may be changed and lists edited between steps.
  [[nodiscard]] std::vector<Group>& param_groups() noexcept { return groups_; }
  void add_param_group(Group group);
  [[nodiscard]] State& state(const Tensor& param) { return state_[param.id()]; }

 protected:
  [[nodiscard]] std::vector<Tensor> parameters() const override;

 private:
  std::vector<Group> groups_;
  std::unordered_map<const void*, State> state_;
};

}  // namespace infeed::optim
