#pragma once
/// Stochastic gradient descent.

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
/// lr (g + momentum b) with nesterov. One pass over memory a parameter.
/// Errors: ConfigError for options out of range, an empty list, or parameters that are not float32 leaves.
class INFEED_API SGD final : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    SGDOptions options;
  };

  explicit SGD(std::vector<Tensor> params, const SGDOptions& options = {});
  explicit SGD(std::vector<Group> groups);

  void step() override;

  /// Groups in order; their options may be changed between steps (a schedule sets lr).
  [[nodiscard]] std::vector<Group>& param_groups() noexcept { return groups_; }

 protected:
  [[nodiscard]] std::vector<Tensor> parameters() const override;

 private:
  void check() const;
  void step_parameter(const Group& group, const Tensor& param, Tensor& buffer);

  std::vector<Group> groups_;
  std::vector<std::vector<Tensor>> buffers_;  // momentum, as groups_[i].params; undefined before the first step
};

}  // namespace infeed::optim
