#include "infeed/train/nn/module.h"

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"

namespace infeed::nn {

Module::~Module() = default;

void Module::train(bool mode) {
  training_ = mode;
  for (const NamedModule& child : children_) child.module->train(mode);
}

void Module::visit(const std::string& prefix, const Visit& visitor) const {
  visitor(prefix, *this);
  for (const NamedModule& child : children_) child.module->visit(prefix + child.name + ".", visitor);
}

std::vector<NamedTensor> Module::named_parameters() const {
  std::vector<NamedTensor> result;
  visit("", [&](const std::string& prefix, const Module& module) {
    for (const NamedTensor& parameter : module.parameters_)
      result.push_back({prefix + parameter.name, parameter.tensor});
  });
  return result;
}

std::vector<NamedTensor> Module::named_buffers() const {
  std::vector<NamedTensor> result;
  visit("", [&](const std::string& prefix, const Module& module) {
    for (const NamedTensor& buffer : module.buffers_) result.push_back({prefix + buffer.name, buffer.tensor});
  });
  return result;
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (NamedTensor& parameter : named_parameters()) result.push_back(std::move(parameter.tensor));
  return result;
}

// PyTorch's order: a module's parameters, its buffers, then its children.
std::vector<NamedTensor> Module::state_dict() const {
  std::vector<NamedTensor> result;
  visit("", [&](const std::string& prefix, const Module& module) {
    for (const NamedTensor& parameter : module.parameters_)
      result.push_back({prefix + parameter.name, parameter.tensor});
    for (const NamedTensor& buffer : module.buffers_) result.push_back({prefix + buffer.name, buffer.tensor});
  });
  return result;
}

void Module::load_state_dict(std::span<const NamedTensor> state) {
  std::vector<NamedTensor> own = state_dict();
  const auto find = [](const auto& list, const std::string& name) {
    return std::find_if(list.begin(), list.end(), [&](const NamedTensor& entry) { return entry.name == name; });
  };
  for (const NamedTensor& given : state) {
    if (find(own, given.name) == own.end())
      throw StateError(fmt::format("load_state_dict: this model has no '{}'.", given.name));
  }
  for (const NamedTensor& entry : own) {
    const auto given = find(state, entry.name);
    if (given == state.end()) throw StateError(fmt::format("load_state_dict: '{}' is missing.", entry.name));
    if (given->tensor.shape() != entry.tensor.shape())
      throw StateError(fmt::format("load_state_dict: '{}' has shape {}, this model's has {}.", entry.name,
                                   given->tensor.shape().str(), entry.tensor.shape().str()));
  }
  const NoGradGuard no_grad;
  for (NamedTensor& entry : own) entry.tensor.copy_(find(state, entry.name)->tensor);
}

void Module::zero_grad(bool set_to_none) {
  for (Tensor& parameter : parameters()) {
    if (set_to_none) {
      parameter.set_grad({});
    } else if (Tensor grad = parameter.grad(); grad.defined()) {
      grad.zero_();
    }
  }
}

void Module::check_name(std::string_view name) const {
  const auto taken = [&](const auto& list) {
    return std::any_of(list.begin(), list.end(), [&](const auto& entry) { return entry.name == name; });
  };
  if (name.empty() || name.find('.') != std::string_view::npos)
    throw ConfigError(fmt::format("'{}' cannot name a part of a module: it is empty or has a dot.", name));
  if (taken(parameters_) || taken(buffers_) || taken(children_))
    throw ConfigError(fmt::format("the module already has a part named '{}'.", name));
}

Tensor Module::register_parameter(std::string name, Tensor tensor) {
  check_name(name);
  tensor.set_requires_grad();
  parameters_.push_back({std::move(name), tensor});
  return tensor;
}

Tensor Module::register_buffer(std::string name, Tensor tensor) {
  check_name(name);
  buffers_.push_back({std::move(name), tensor});
  return tensor;
}

void Module::add_child(std::string name, std::shared_ptr<Module> child) {
  check_name(name);
  children_.push_back({std::move(name), std::move(child)});
}

}  // namespace infeed::nn
