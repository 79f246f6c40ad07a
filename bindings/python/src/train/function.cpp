// autograd.Function: the core's CustomNode with forward and backward in Python.

#include "infeed/train/autograd/function.h"

#include <fmt/format.h>

#include "binder.h"

namespace infeed::python {
namespace {

/// `ctx`. Owned by its node; it knows the node only while that lives, so there is no cycle.
struct Context {
  CustomNode* node = nullptr;
  nb::object needs_input_grad;

  [[nodiscard]] FunctionContext& in_node() const {
    if (node == nullptr) throw RuntimeError("the graph that this ctx belongs to is gone");
    return node->context();
  }
};

class PythonNode final : public CustomNode {
 public:
  PythonNode(std::string name, nb::object function, nb::object context, std::vector<int> edge_of_argument)
      : CustomNode(std::move(name)),
        function_(std::move(function)),
        context_(std::move(context)),
        edge_of_argument_(std::move(edge_of_argument)) {
    nb::inst_ptr<Context>(context_)->node = this;
  }
  ~PythonNode() override {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    nb::inst_ptr<Context>(context_)->node = nullptr;
    context_.reset();
    function_.reset();
  }

 protected:
  std::vector<Tensor> run_backward(FunctionContext& /*context*/, std::vector<Tensor> grads) override {
    const nb::gil_scoped_acquire locked;
    nb::list arguments;
    for (const Tensor& grad : grads) arguments.append(to_python(grad));
    const nb::object result = function_.attr("backward")(context_, *arguments);
    const nb::tuple given = nb::isinstance<nb::tuple>(result) ? nb::borrow<nb::tuple>(result) : nb::make_tuple(result);
    check_count(given);
    std::vector<Tensor> inputs(next().size());
    for (std::size_t i = 0; i < edge_of_argument_.size(); ++i) take(given[i], i, inputs);
    return inputs;
  }

 private:
  void check_count(const nb::tuple& given) const {
    bool fits = given.size() >= edge_of_argument_.size();
    for (std::size_t i = edge_of_argument_.size(); i < given.size(); ++i) fits = fits && given[i].is_none();
    if (!fits)
      throw RuntimeError(fmt::format("function {} returned an incorrect number of gradients (expected {}, got {})",
                                     name(), edge_of_argument_.size(), given.size()));
  }

  void take(nb::handle grad, std::size_t argument, std::vector<Tensor>& inputs) const {
    if (grad.is_none()) return;
    const int edge = edge_of_argument_[argument];
    if (edge < 0)
      throw RuntimeError(
          fmt::format("function {} returned a gradient different from None at position {}, but the "
                      "corresponding forward input was not a Variable",
                      name(), argument + 1));
    if (!is_tensor(grad))
      throw nb::type_error(fmt::format("expected Variable or None (got {})", Py_TYPE(grad.ptr())->tp_name).c_str());
    if (needs_input_grad(edge)) inputs[static_cast<std::size_t>(edge)] = tensor_of(grad);
  }

  nb::object function_;
  nb::object context_;
  std::vector<int> edge_of_argument_;  // -1: not a tensor
};

// What forward() returns, as tensors: undefined in the place of anything else.
std::vector<Tensor> tensors_among(const nb::object& result) {
  std::vector<Tensor> tensors;
  const nb::tuple all = nb::isinstance<nb::tuple>(result) ? nb::borrow<nb::tuple>(result) : nb::make_tuple(result);
  for (const nb::handle one : all) tensors.push_back(is_tensor(one) ? tensor_of(one) : Tensor());
  return tensors;
}

// The same with the tensors that the node has made of them.
nb::object with_tensors(const nb::object& result, const std::vector<Tensor>& tensors) {
  if (!nb::isinstance<nb::tuple>(result)) return tensors[0].defined() ? to_python(tensors[0]) : result;
  nb::list all(result);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].defined()) all[i] = to_python(tensors[i]);
  }
  return nb::tuple(all);
}

nb::object run_forward(const nb::object& function, const nb::object& context, const nb::args& args) {
  if (!nb::cast<bool>(function.attr("_has_setup_context"))) return function.attr("forward")(context, *args);
  nb::object result = function.attr("forward")(*args);
  function.attr("setup_context")(context, args, result);
  return result;
}

nb::object apply(const nb::object& function, const nb::args& args) {
  std::vector<Tensor> inputs;
  std::vector<int> edge_of_argument;
  nb::list needs;
  for (const nb::handle arg : args) {
    edge_of_argument.push_back(is_tensor(arg) ? static_cast<int>(inputs.size()) : -1);
    if (is_tensor(arg)) inputs.push_back(tensor_of(arg));
    needs.append(is_tensor(arg) && inputs.back().requires_grad());
  }
  const nb::object context = function.attr("_context_type")();
  nb::inst_ptr<Context>(context)->needs_input_grad = nb::tuple(needs);
  const auto node = std::make_shared<PythonNode>(nb::cast<std::string>(function.attr("_node_name")), function, context,
                                                 std::move(edge_of_argument));
  nb::object result;
  const std::vector<Tensor> outputs = node->apply(inputs, [&](FunctionContext&) {
    result = run_forward(function, context, args);
    return tensors_among(result);
  });
  return with_tensors(result, outputs);
}

std::vector<Tensor> tensors_of(const nb::args& args) {
  std::vector<Tensor> tensors;
  for (const nb::handle arg : args) {
    if (!arg.is_none() && !is_tensor(arg))
      throw nb::type_error(fmt::format("save_for_backward can only save variables, but argument {} is of type {}",
                                       tensors.size(), Py_TYPE(arg.ptr())->tp_name)
                               .c_str());
    tensors.push_back(arg.is_none() ? Tensor() : tensor_of(arg));
  }
  return tensors;
}

nb::tuple saved_tensors(const Context& self) {
  nb::list saved;
  if (self.node == nullptr) return nb::tuple(saved);
  for (const Tensor& tensor : self.node->context().saved_tensors()) saved.append(to_python(tensor));
  return nb::tuple(saved);
}

}  // namespace

void bind_function(const Binder& to) {
  nb::class_<Context>(to.module, "FunctionContext", nb::dynamic_attr(), nb::is_weak_referenceable(),
                      "What forward() leaves for backward().")
      .def(nb::init<>())
      .def("save_for_backward",
           [](const Context& self, const nb::args& tensors) { self.in_node().save_for_backward(tensors_of(tensors)); })
      .def("mark_dirty",
           [](const Context& self, const nb::args& tensors) { self.in_node().mark_dirty(tensors_of(tensors)); })
      .def("mark_non_differentiable",
           [](const Context& self, const nb::args& tensors) {
             self.in_node().mark_non_differentiable(tensors_of(tensors));
           })
      .def("set_materialize_grads",
           [](const Context& self, bool value) { self.in_node().set_materialize_grads(value); })
      .def_prop_ro("saved_tensors", saved_tensors)
      .def_prop_ro("needs_input_grad", [](const Context& self) { return self.needs_input_grad; })
      .def("name", [](nb::handle self) { return self.type().attr("__name__"); });
  to.module.def("_apply", apply);
}

}  // namespace infeed::python
