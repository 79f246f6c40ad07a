#pragma once
/// What all optimizers share.

#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::optim {

/// Changes parameters from their gradients. Groups of parameters may have options of their own.
/// Threads: one at a time, never beside a backward() over the same parameters.
class INFEED_API Optimizer {
 public:
  virtual ~Optimizer();

  /// Takes one step. Parameters without a grad are left alone. Not recorded.
  virtual void step() = 0;

  /// Drops, or sets to 0, the grad of every parameter. Dropping saves a pass over memory.
  void zero_grad(bool set_to_none = true);

 protected:
  /// Every parameter of every group.
  [[nodiscard]] virtual std::vector<Tensor> parameters() const = 0;
};

/// An optimizer over groups of parameters, each with options of its own.
/// Errors: ConfigError for options out of range, an empty list, and parameters that are no leaves that require grad or
/// stand in two groups.
template <class Options>
class INFEED_API GroupedOptimizer : public Optimizer {
 public:
  struct Group {
    std::vector<Tensor> params;
    Options options;
  };

  explicit GroupedOptimizer(std::vector<Tensor> params, const Options& options = {});
  explicit GroupedOptimizer(std::vector<Group> groups);

  /// Groups in order: options may be changed (a schedule sets lr) and lists edited between steps.
  [[nodiscard]] std::vector<Group>& param_groups() noexcept { return groups_; }
  void add_param_group(Group group);

 protected:
  [[nodiscard]] std::vector<Tensor> parameters() const override;

  std::vector<Group> groups_;
};

}  // namespace infeed::optim
