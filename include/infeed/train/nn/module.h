#pragma once
/// Module: parameters, buffers and children under names.

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/tensor/named_tensor.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed::nn {

class Module;

using infeed::NamedTensor;

struct NamedModule {
  std::string name;
  std::shared_ptr<Module> module;
};

/// A module below another, under its path ("" is the module itself).
struct ModuleAt {
  std::string path;
  Module* module;
};

/// What load_state_dict() found too little and too much.
struct IncompatibleKeys {
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
};

/// Base of all layers and models. A model of your own registers its parts and overrides forward():
///
///   struct Net : nn::Module {
///     std::shared_ptr<nn::Linear> fc = register_module("fc", nn::Linear(784, 10));
///     Tensor forward(const Tensor& x) override { return (*fc)(x.flatten(1)); }
///   };
///
/// Names join by dots as PyTorch's do ("fc.weight"). Movable, since tensors and children are shared handles; a copy
/// would share its parameters, so there is none. Threads: one at a time.
class INFEED_API Module {
 public:
  Module() = default;
  virtual ~Module();
  Module(Module&&) = default;
  Module& operator=(Module&&) = default;

  /// NotImplementedError unless overridden.
  [[nodiscard]] virtual Tensor forward(const Tensor& x);
  [[nodiscard]] Tensor operator()(const Tensor& x) { return forward(x); }

  /// Training mode is the default; batch norm and dropout behave otherwise in evaluation.
  virtual void train(bool mode = true);
  void eval() { train(false); }
  [[nodiscard]] bool is_training() const noexcept { return training_; }

  // What is shared comes once, under its first name.
  [[nodiscard]] std::vector<Tensor> parameters() const;
  [[nodiscard]] std::vector<NamedTensor> named_parameters() const;
  [[nodiscard]] std::vector<NamedTensor> named_buffers() const;
  [[nodiscard]] std::vector<ModuleAt> named_modules();  ///< this one first
  [[nodiscard]] const std::vector<NamedModule>& children() const noexcept { return children_; }
  /// Calls `f` on every module, children first.
  void apply(const std::function<void(Module&)>& f);

  /// Parameters and persistent buffers: handles, so a later step changes them; clone() what must stay.
  [[nodiscard]] std::vector<NamedTensor> state_dict() const;
  /// Copies values in, all or none: StateError lists every tensor of another shape and, if strict, every name that is
  /// missing or unknown.
  IncompatibleKeys load_state_dict(std::span<const NamedTensor> state, bool strict = true);

  /// Converts parameters, their grads and buffers in place: a floating-point dtype (TypeError for others) changes
  /// tensors of such dtypes, a device all.
  void to(const TensorOptions& options);
  void requires_grad_(bool value = true);  ///< of every parameter
  /// Drops, or sets to 0, the grad of every parameter.
  void zero_grad(bool set_to_none = true);

 protected:
  /// Returns the tensor, now requiring grad. Names must be distinct and without dots.
  Tensor register_parameter(std::string name, Tensor tensor);
  /// A tensor that moves with the module but is not trained; in state_dict() if `persistent`.
  Tensor register_buffer(std::string name, Tensor tensor, bool persistent = true);
  template <class Child>
  std::shared_ptr<Child> register_module(const std::string& name, Child child) {
    return register_module(name, std::make_shared<Child>(std::move(child)));
  }
  template <class Child>
  std::shared_ptr<Child> register_module(const std::string& name, std::shared_ptr<Child> child) {
    add_child(name, child);
    return child;
  }
  void add_child(std::string name, std::shared_ptr<Module> child);

 private:
  struct Buffer : NamedTensor {
    bool persistent;
  };
  using Visit = std::function<void(const std::string& prefix, const Module& module)>;
  void visit(const std::string& prefix, const Visit& visitor) const;
  void check_name(std::string_view name) const;

  std::vector<NamedTensor> parameters_;
  std::vector<Buffer> buffers_;
  std::vector<NamedModule> children_;
  bool training_ = true;
};

}  // namespace infeed::nn
