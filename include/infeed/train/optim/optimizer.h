#pragma once
/// What all optimizers share.

#include <string_view>
#include <variant>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/named_tensor.h"
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

  /// What it keeps of each parameter, as "<number>.<name>" ("0.exp_avg"; numbers count through all groups), and each
  /// group's options: handles, so a later step changes them.
  [[nodiscard]] virtual StateDict state_dict() = 0;
  /// Copies values in, all or none. StateError unless they come from the same kind of optimizer over groups of the same
  /// sizes and parameters of the same shapes.
  virtual void load_state_dict(const StateDict& saved) = 0;

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

  [[nodiscard]] StateDict state_dict() override;
  void load_state_dict(const StateDict& saved) override;

 protected:
  /// A thing kept of a parameter: a tensor of its shape (undefined before it is needed), or a count.
  struct Slot {
    std::string_view name;
    std::variant<Tensor*, double*> value;
  };
  [[nodiscard]] virtual std::vector<Slot> slots(const Tensor& param) = 0;
  [[nodiscard]] std::vector<Tensor> parameters() const override;

  std::vector<Group> groups_;
};

}  // namespace infeed::optim
