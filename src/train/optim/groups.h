#pragma once
/// Groups of parameters, whatever their options: the bodies of GroupedOptimizer. Who instantiates it gives
/// check_options(const Options&), which throws ConfigError, and name_of(const Options&).

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
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

inline void check_range(bool fits, std::string_view optimizer, std::string_view option, double value) {
  if (!fits) throw ConfigError(fmt::format("{}: {} is {}, which is out of range.", optimizer, option, value));
}

}  // namespace infeed::optim
