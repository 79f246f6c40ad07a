#include "infeed/train/nn/module.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "infeed/base/error.h"
#include "infeed/train/autograd/grad_mode.h"

namespace infeed::nn {
namespace {

std::vector<NamedTensor> once(std::vector<NamedTensor> tensors) {
  std::unordered_set<const void*> seen;
  std::erase_if(tensors, [&](const NamedTensor& entry) { return !seen.insert(entry.tensor.id()).second; });
  return tensors;
}

const Tensor* find(std::span<const NamedTensor> state, const std::string& name) {
  const auto found = std::find_if(state.begin(), state.end(), [&](const auto& entry) { return entry.name == name; });
  return found == state.end() ? nullptr : &found->tensor;
}

std::string quoted(const std::vector<std::string>& names) { return fmt::format("\"{}\"", fmt::join(names, "\", \"")); }

}  // namespace

Module::~Module() = default;

Tensor Module::forward(const Tensor& /*x*/) {
  throw NotImplementedError("this module has no forward function of one tensor");
}

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
  return once(std::move(result));
}

std::vector<NamedTensor> Module::named_buffers() const {
  std::vector<NamedTensor> result;
  visit("", [&](const std::string& prefix, const Module& module) {
    for (const Buffer& buffer : module.buffers_) result.push_back({prefix + buffer.name, buffer.tensor});
  });
  return once(std::move(result));
}

std::vector<Tensor> Module::parameters() const {
  std::vector<Tensor> result;
  for (NamedTensor& parameter : named_parameters()) result.push_back(std::move(parameter.tensor));
  return result;
}

std::vector<ModuleAt> Module::named_modules() {
  std::vector<ModuleAt> result = {{"", this}};
  for (const NamedModule& child : children_) {
    for (ModuleAt& below : child.module->named_modules())
      result.push_back({child.name + (below.path.empty() ? "" : ".") + below.path, below.module});
  }
  std::unordered_set<const Module*> seen;
  std::erase_if(result, [&](const ModuleAt& entry) { return !seen.insert(entry.module).second; });
  return result;
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (const NamedModule& child : children_) child.module->apply(f);
  f(*this);
}

// PyTorch's order: a module's parameters, its buffers, then its children. A shared tensor is there under all its names.
std::vector<NamedTensor> Module::state_dict() const {
  std::vector<NamedTensor> result;
  visit("", [&](const std::string& prefix, const Module& module) {
    for (const NamedTensor& parameter : module.parameters_)
      result.push_back({prefix + parameter.name, parameter.tensor});
    for (const Buffer& buffer : module.buffers_)
      if (buffer.persistent) result.push_back({prefix + buffer.name, buffer.tensor});
  });
  return result;
}

IncompatibleKeys Module::load_state_dict(std::span<const NamedTensor> state, bool strict) {
  std::vector<NamedTensor> own = state_dict();
  IncompatibleKeys keys;
  for (const NamedTensor& given : state)
    if (find(own, given.name) == nullptr) keys.unexpected.push_back(given.name);
  std::string errors;
  for (const auto& [name, tensor] : own) {
    const Tensor* given = find(state, name);
    if (given == nullptr) {
      keys.missing.push_back(name);
    } else if (given->shape() != tensor.shape()) {
      errors += fmt::format("\n\tsize mismatch for {}: the state has shape {}, this model {}.", name,
                            given->shape().str(), tensor.shape().str());
    }
  }
  if (strict && !keys.unexpected.empty())
    errors.insert(0, fmt::format("\n\tUnexpected key(s) in state_dict: {}.", quoted(keys.unexpected)));
  if (strict && !keys.missing.empty())
    errors.insert(0, fmt::format("\n\tMissing key(s) in state_dict: {}.", quoted(keys.missing)));
  if (!errors.empty()) throw StateError("Error(s) in loading state_dict:" + errors);
  const NoGradGuard no_grad;
  for (NamedTensor& entry : own)
    if (const Tensor* given = find(state, entry.name)) entry.tensor.copy_(*given);
  return keys;
}

void Module::to(const TensorOptions& options) {
  if (options.dtype && !is_floating_point(*options.dtype))
    throw TypeError(fmt::format("Module::to takes floating-point dtypes, not {}.", to_string(*options.dtype)));
  const NoGradGuard no_grad;
  const auto convert = [&](Tensor& tensor) {
    TensorOptions wanted = options;
    if (!is_floating_point(tensor.dtype())) wanted.dtype.reset();
    tensor.set_data(tensor.to(wanted));
  };
  for (NamedTensor& parameter : named_parameters()) {
    Tensor grad = parameter.tensor.grad();
    convert(parameter.tensor);
    if (grad.defined()) convert(grad);
  }
  for (NamedTensor& buffer : named_buffers()) convert(buffer.tensor);
}

void Module::requires_grad_(bool value) {
  for (Tensor& parameter : parameters()) parameter.set_requires_grad(value);
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

Tensor Module::register_buffer(std::string name, Tensor tensor, bool persistent) {
  check_name(name);
  buffers_.push_back({{std::move(name), tensor}, persistent});
  return tensor;
}

void Module::add_child(std::string name, std::shared_ptr<Module> child) {
  check_name(name);
  children_.push_back({std::move(name), std::move(child)});
}

}  // namespace infeed::nn
