#pragma once
/// What all optimizers share.

#include <cstddef>
#include <string_view>
#include <unordered_map>
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

  /// Every parameter of every group, in order.
  [[nodiscard]] virtual std::vector<Tensor> parameters() const = 0;
  [[nodiscard]] virtual std::size_t num_groups() const noexcept = 0;
  /// An option of a group by PyTorch's name ("lr"); null where the algorithm has none of that name.
  [[nodiscard]] virtual double* option(std::size_t group, std::string_view name) = 0;

  /// Tensors "<number>.<name>" (a parameter's place in parameters(), PyTorch's name), options and sizes of the groups.
  [[nodiscard]] virtual StateDict state_dict() const = 0;
  /// Takes over the options and copies of the tensors, in the parameters' dtypes. Throws StateError where groups or shapes
  /// differ; then nothing has changed.
  virtual void load_state_dict(const StateDict& saved) = 0;
};

/// An optimizer over groups of parameters, each with options of its own, that keeps a ParamState of each parameter.
/// Errors: ConfigError for options out of range, an empty list, and parameters that are no leaves that require grad or
/// stand in two groups.
template <class Options, class ParamState>
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

  /// What is kept of a parameter; empty before its first step.
  [[nodiscard]] ParamState& state(const Tensor& param) { return state_[param.id()]; }

  [[nodiscard]] std::vector<Tensor> parameters() const override;
  [[nodiscard]] std::size_t num_groups() const noexcept override { return groups_.size(); }
  [[nodiscard]] double* option(std::size_t group, std::string_view name) override;
  [[nodiscard]] StateDict state_dict() const override;
  void load_state_dict(const StateDict& saved) override;

 protected:
  std::vector<Group> groups_;
  std::unordered_map<const void*, ParamState> state_;  // by Tensor::id()

 private:
  [[nodiscard]] std::unordered_map<const void*, ParamState> state_of(const StateDict& saved) const;
};

}  // namespace infeed::optim
