#pragma once
/// Groups of parameters, whatever their options: the bodies of GroupedOptimizer. Who instantiates it gives
/// check_options(const Options&), which throws ConfigError, name_of(const Options&), and each_option(Options&, visit) and
/// each_state(ParamState&, visit), which call visit(name, member).

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/train/optim/optimizer.h"

namespace infeed::optim {

template <class Group>
std::vector<Tensor> parameters_of(const std::vector<Group>& groups) {
  std::vector<Tensor> all;
  for (const Group& group : groups) all.insert(all.end(), group.params.begin(), group.params.end());
  return all;
}

/// Throws ConfigError for a group without parameters, one that is no leaf, or one that stands in another group.
template <class Group>
void check_group(std::string_view optimizer, const std::vector<Group>& others, const Group& group) {
  if (group.params.empty())
    throw ConfigError(fmt::format("{}: a group has no parameters; pass module.parameters().", optimizer));
  const std::vector<Tensor> known = parameters_of(others);
  for (const Tensor& param : group.params) {
    if (!param.is_leaf() || !param.requires_grad() || !is_floating_point(param.dtype()))
      throw ConfigError(fmt::format("{}: a parameter of shape {} and dtype {} is not a leaf that requires grad.",
                                    optimizer, param.shape().str(), to_string(param.dtype())));
    if (std::any_of(known.begin(), known.end(), [&](const Tensor& other) { return other.is_same(param); }))
      throw ConfigError(
          fmt::format("{}: a parameter of shape {} stands in two groups.", optimizer, param.shape().str()));
  }
}

template <class Options, class ParamState>
GroupedOptimizer<Options, ParamState>::GroupedOptimizer(std::vector<Tensor> params, const Options& options)
    : GroupedOptimizer(std::vector<Group>{{std::move(params), options}}) {}

template <class Options, class ParamState>
GroupedOptimizer<Options, ParamState>::GroupedOptimizer(std::vector<Group> groups) {
  if (groups.empty()) throw ConfigError(fmt::format("{}: no group of parameters is given.", name_of(Options{})));
  for (Group& group : groups) add_param_group(std::move(group));
}

template <class Options, class ParamState>
void GroupedOptimizer<Options, ParamState>::add_param_group(Group group) {
  check_options(group.options);
  check_group(name_of(group.options), groups_, group);
  groups_.push_back(std::move(group));
}

template <class Options, class ParamState>
std::vector<Tensor> GroupedOptimizer<Options, ParamState>::parameters() const {
  return parameters_of(groups_);
}

template <class Options, class ParamState>
double* GroupedOptimizer<Options, ParamState>::option(std::size_t group, std::string_view name) {
  double* found = nullptr;
  each_option(groups_.at(group).options, [&]<class Value>(std::string_view own, Value& value) {
    if constexpr (std::is_same_v<Value, double>) found = own == name ? &value : found;
  });
  return found;
}

// ---- State ----

// A count as a tensor, a tensor as it is; an undefined one is not kept.
inline Tensor to_saved(const Tensor& value) { return value.defined() ? value.detach() : value; }
inline Tensor to_saved(double value) { return Tensor::full({}, value, TensorOptions(DType::kFloat64, DeviceId{})); }

inline void from_saved(const Tensor& saved, const Tensor& /*param*/, double& value) {
  value = saved.defined() ? saved.item() : 0.0;
}
inline void from_saved(const Tensor& saved, const Tensor& param, Tensor& value) {
  value = saved.defined() ? saved.to(param.options(), true) : Tensor();
}

template <class Options, class ParamState>
StateDict GroupedOptimizer<Options, ParamState>::state_dict() const {
  StateDict saved;
  const std::vector<Tensor> params = parameters();
  for (std::size_t i = 0; i < params.size(); ++i) {
    const auto found = state_.find(params[i].id());
    if (found == state_.end()) continue;
    ParamState state = found->second;
    each_state(state, [&](std::string_view name, const auto& value) {
      if (Tensor tensor = to_saved(value); tensor.defined())
        saved.tensors.push_back({fmt::format("{}.{}", i, name), std::move(tensor)});
    });
  }
  std::vector<State> groups;
  for (Group group : groups_) {
    State& options = groups.emplace_back();
    options.set("num_params", static_cast<std::int64_t>(group.params.size()));
    each_option(group.options, [&](std::string_view name, const auto& value) { options.set(name, value); });
  }
  saved.state.set("param_groups", groups);
  return saved;
}

template <class Options, class ParamState>
void GroupedOptimizer<Options, ParamState>::load_state_dict(const StateDict& saved) {
  const std::vector<State> options = saved.state.get_states("param_groups");
  if (options.size() != groups_.size())
    throw StateError(fmt::format("{}: the saved state has {} groups of parameters, this optimizer {}.",
                                 name_of(Options{}), options.size(), groups_.size()));
  std::vector<Group> groups = groups_;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const auto here = static_cast<std::int64_t>(groups[i].params.size()), there = options[i].get_int("num_params");
    if (here != there)
      throw StateError(fmt::format("{}: group {} has {} parameters in the saved state and {} here.", name_of(Options{}),
                                   i, there, here));
    each_option(groups[i].options, [&]<class Value>(std::string_view name, Value& value) {
      if constexpr (std::is_same_v<Value, bool>)
        value = options[i].get_bool(name);
      else
        value = options[i].get_double(name);
    });
    check_options(groups[i].options);
  }
  auto state = state_of(saved);
  groups_ = std::move(groups);
  state_ = std::move(state);
}

template <class Options, class ParamState>
std::unordered_map<const void*, ParamState> GroupedOptimizer<Options, ParamState>::state_of(
    const StateDict& saved) const {
  std::unordered_map<const void*, ParamState> all;
  const std::vector<Tensor> params = parameters();
  for (std::size_t i = 0; i < params.size(); ++i) {
    ParamState state;
    bool is_kept = false;
    each_state(state, [&]<class Value>(std::string_view name, Value& value) {
      const std::string full = fmt::format("{}.{}", i, name);
      const Tensor found = saved.find(full);
      if (std::is_same_v<Value, Tensor> && found.defined() && found.shape() != params[i].shape())
        throw StateError(fmt::format("{}: '{}' has shape {} in the saved state, its parameter has {}.",
                                     name_of(Options{}), full, found.shape().str(), params[i].shape().str()));
      from_saved(found, params[i], value);
      is_kept = is_kept || found.defined();
    });
    if (is_kept) all.emplace(params[i].id(), std::move(state));
  }
  return all;
}

inline void check_range(bool fits, std::string_view optimizer, std::string_view option, double value) {
  if (!fits) throw ConfigError(fmt::format("{}: {} is {}, which is out of range.", optimizer, option, value));
}

}  // namespace infeed::optim
