#pragma once
/// Groups of parameters, whatever their options: the bodies of GroupedOptimizer. Who instantiates it gives
/// check_options(const Options&), which throws ConfigError, name_of(const Options&), and each_option(Options&, f), which
/// calls f(name, value) for every one.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"
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

template <class Options>
GroupedOptimizer<Options>::GroupedOptimizer(std::vector<Tensor> params, const Options& options)
    : GroupedOptimizer(std::vector<Group>{{std::move(params), options}}) {}

template <class Options>
GroupedOptimizer<Options>::GroupedOptimizer(std::vector<Group> groups) {
  if (groups.empty()) throw ConfigError(fmt::format("{}: no group of parameters is given.", name_of(Options{})));
  for (Group& group : groups) add_param_group(std::move(group));
}

template <class Options>
void GroupedOptimizer<Options>::add_param_group(Group group) {
  check_options(group.options);
  check_group(name_of(group.options), groups_, group);
  groups_.push_back(std::move(group));
}

template <class Options>
std::vector<Tensor> GroupedOptimizer<Options>::parameters() const {
  return parameters_of(groups_);
}

inline std::string key_of(std::size_t param, std::string_view slot) { return fmt::format("{}.{}", param, slot); }

template <class Options>
StateDict GroupedOptimizer<Options>::state_dict() {
  StateDict result;
  std::vector<State> saved;
  for (Group& group : groups_) {
    State& state = saved.emplace_back();
    state.set("params", static_cast<std::int64_t>(group.params.size()));
    each_option(group.options, [&](const char* name, const auto& value) { state.set(name, value); });
  }
  result.state.set("optimizer", name_of(Options{}));
  result.state.set("param_groups", saved);
  const std::vector<Tensor> params = parameters();
  for (std::size_t i = 0; i < params.size(); ++i) {
    for (const Slot& slot : slots(params[i])) {
      const auto* count = std::get_if<double*>(&slot.value);
      const Tensor tensor = count ? Tensor::full({}, **count, DType::kFloat64) : *std::get<Tensor*>(slot.value);
      if (tensor.defined()) result.tensors.push_back({key_of(i, slot.name), tensor});
    }
  }
  return result;
}

/// The options of each group; StateError unless they are of this kind of optimizer and fit the groups.
template <class Options, class Group>
std::vector<Options> options_from(const State& state, const std::vector<Group>& groups) {
  const std::string_view name = name_of(Options{});
  if (const std::string of = state.get_string("optimizer"); of != name)
    throw StateError(fmt::format("{}: the state is one of {}.", name, of));
  const std::vector<State> saved = state.get_states("param_groups");
  const auto fits = [](const State& is, const Group& group) { return is.get_uint("params") == group.params.size(); };
  if (!std::equal(saved.begin(), saved.end(), groups.begin(), groups.end(), fits))
    throw StateError(fmt::format("{}: the state's groups ({}) or their sizes are not those of this optimizer ({}).",
                                 name, saved.size(), groups.size()));
  std::vector<Options> all(saved.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    each_option(all[i], [&]<class Value>(const char* option, Value& value) {
      if constexpr (std::is_same_v<Value, bool>)
        value = saved[i].get_bool(option);
      else
        value = saved[i].get_double(option);
    });
    check_options(all[i]);
  }
  return all;
}

template <class Options>
void GroupedOptimizer<Options>::load_state_dict(const StateDict& saved) {
  const std::vector<Options> options = options_from<Options>(saved.state, groups_);
  const std::vector<Tensor> params = parameters();
  std::size_t found = 0;
  for (std::size_t i = 0; i < params.size(); ++i) {
    for (const Slot& slot : slots(params[i])) {
      const Tensor given = saved.find(key_of(i, slot.name));
      if (!given.defined()) continue;
      ++found;
      const Shape wanted = std::holds_alternative<double*>(slot.value) ? Shape{} : params[i].shape();
      if (given.shape() != wanted)
        throw StateError(fmt::format("{}: '{}' has shape {}, not {}.", name_of(Options{}), key_of(i, slot.name),
                                     given.shape().str(), wanted.str()));
    }
  }
  if (found != saved.tensors.size())
    throw StateError(fmt::format("{}: {} of the state's tensors are of no parameter here.", name_of(Options{}),
                                 saved.tensors.size() - found));
  const NoGradGuard no_grad;
  for (std::size_t i = 0; i < params.size(); ++i) {
    for (const Slot& slot : slots(params[i])) {
      const Tensor given = saved.find(key_of(i, slot.name));
      if (auto* const* count = std::get_if<double*>(&slot.value)) {
        **count = given.defined() ? given.item() : 0.0;
      } else {
        *std::get<Tensor*>(slot.value) = given.defined() ? Tensor::empty_like(params[i]).copy_(given) : Tensor();
      }
    }
  }
  for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i].options = options[i];
}

inline void check_range(bool fits, std::string_view optimizer, std::string_view option, double value) {
  if (!fits) throw ConfigError(fmt::format("{}: {} is {}, which is out of range.", optimizer, option, value));
}

}  // namespace infeed::optim
