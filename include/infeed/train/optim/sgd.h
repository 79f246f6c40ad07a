#pragma once
/// Stochastic gradient descent.

#include <unordered_map>
#include <vector>

#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

/// PyTorch's meanings and defaults.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  double dampening = 0.0;     ///< must be 0 with nesterov
  double weight_decay = 0.0;  ///< added to the gradient, times the parameter
  bool nesterov = false;      ///< needs momentum
  bool maximize = false;
};

/// g = grad + weight_decay p; b = momentum b + (1 - dampening) g (the first b is g); p -= lr b, or
/// lr (g + momentum b) with nesterov. All parameters of a group in one pass.
/// Errors: ConfigError for options out of range, an empty list, or parameters that are no leaves that require grad.
class INFEED_API SGD final : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    SGDOptions options;
  };

  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  explicit SGD(std::vector<Group> groups);

  void step() override;

  /// Groups in order: options may be changed (a schedule sets lr) and lists edited between steps.
  [[nodiscard]] std::vector<Group>& param_groups() noexcept { return groups_; }
  void add_param_group(Group group);

 protected:
  [[nodiscard]] std::vector<Tensor> parameters() const override;

 private:
  std::vector<Group> groups_;
  std::unordered_map<const void*, Tensor> buffers_;  // momentum, by Tensor::id(); none before the first step
};

}  // namespace infeed::optim
