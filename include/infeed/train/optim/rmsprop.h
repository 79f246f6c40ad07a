#pragma once
/// RMSprop.

#include <unordered_map>
#include <vector>

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;  ///< of the mean squared gradient
  double eps = 1e-8;
  double weight_decay = 0.0;
  double momentum = 0.0;
  bool centered = false;  ///< subtract the square of the mean gradient
  bool maximize = false;
};

/// v = alpha v + (1 - alpha) g^2; p -= lr g / (sqrt(v) + eps), through a momentum buffer if asked. All parameters of a
/// group in one pass. Errors: ConfigError for options out of range or an empty list.
class INFEED_API RMSprop final : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    RMSpropOptions options;
  };
  struct State {
    double step = 0.0;
    Tensor square_avg;
    Tensor momentum_buffer;  ///< with momentum only
    Tensor grad_avg;         ///< centered only
  };

  explicit RMSprop(std::vector<Tensor> params, const RMSpropOptions& options = {});
  explicit RMSprop(std::vector<Group> groups);

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
