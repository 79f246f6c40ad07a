// autograd.Function: nodes whose forward and backward are Python's.

#include <fmt/format.h>

#include <algorithm>

#include "binder.h"
#include "infeed/train/autograd/creation.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"

namespace infeed::python {
namespace {

/// `ctx`. Owned by its node; it knows the node only while that lives, so there is no cycle.
struct Context {
  Node* node = nullptr;
  std::vector<Tensor> to_save;
  std::vector<Tensor> dirty;
  std::vector<Tensor> non_differentiable;
  bool materialize_grads = true;
  nb::object needs_input_grad;
};

class FunctionNode final : public Node {
 public:
  FunctionNode(std::string name, nb::object function, nb::object context, std::vector<int> edge_of_argument)
      : Node("FunctionBackward"),
        name_(std::move(name)),
        function_(std::move(function)),
        context_(std::move(context)),
        edge_of_argument_(std::move(edge_of_argument)) {
    nb::inst_ptr<Context>(context_)->node = this;
  }
  ~FunctionNode() override {
    if (!Py_IsInitialized()) return;
    const nb::gil_scoped_acquire locked;
    nb::inst_ptr<Context>(context_)->node = nullptr;
    context_.reset();
    function_.reset();
  }

  void backward(std::span<Tensor> grads, std::span<Tensor> inputs) override {
    const nb::gil_scoped_acquire locked;
    const nb::object result = function_.attr("backward")(context_, *arguments(grads));
    nb::tuple given = nb::isinstance<nb::tuple>(result) ? nb::borrow<nb::tuple>(result) : nb::make_tuple(result);
    check_count(given);
    for (std::size_t i = 0; i < edge_of_argument_.size(); ++i) take(given[i], i, inputs);
  }
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }

 private:
  [[nodiscard]] nb::list arguments(std::span<const Tensor> grads) const {
    const bool materialize = nb::inst_ptr<Context>(context_)->materialize_grads;
    nb::list arguments;
    for (std::size_t i = 0; i < grads.size(); ++i) {
      const OutputInfo& info = output(static_cast<int>(i));
      arguments.append(to_python(grads[i].defined() || !materialize
                                     ? grads[i]
                                     : Tensor::zeros(info.shape, TensorOptions(info.dtype, info.device))));
    }
    return arguments;
  }

  void check_count(const nb::tuple& given) const {
    bool fits = given.size() >= edge_of_argument_.size();
    for (std::size_t i = edge_of_argument_.size(); i < given.size(); ++i) fits = fits && given[i].is_none();
    if (!fits)
      throw RuntimeError(fmt::format("function {} returned an incorrect number of gradients (expected {}, got {})",
                                     name_, edge_of_argument_.size(), given.size()));
  }

  void take(nb::handle grad, std::size_t argument, std::span<Tensor> inputs) const {
    if (grad.is_none()) return;
    const int edge = edge_of_argument_[argument];
    if (edge < 0)
      throw RuntimeError(
          fmt::format("function {} returned a gradient different from None at position {}, but the "
                      "corresponding forward input was not a Variable",
                      name_, argument + 1));
    if (!is_tensor(grad))
      throw nb::type_error(fmt::format("expected Variable or None (got {})", Py_TYPE(grad.ptr())->tp_name).c_str());
    if (needs_input_grad(edge)) inputs[static_cast<std::size_t>(edge)] = tensor_of(grad);
  }

  std::string name_;
  nb::object function_;
  nb::object context_;
  std::vector<int> edge_of_argument_;  // -1: not a tensor
};

bool contains(const std::vector<Tensor>& tensors, const Tensor& tensor) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const Tensor& one) { return one.is_same(tensor); });
}

// One call of apply().
class Call {
 public:
  Call(nb::object function, nb::args args) : function_(std::move(function)), args_(std::move(args)) {
    nb::list needs;
    for (const nb::handle arg : args_) {
      edge_of_argument_.push_back(is_tensor(arg) ? static_cast<int>(inputs_.size()) : -1);
      if (is_tensor(arg)) inputs_.push_back(tensor_of(arg));
      needs.append(is_tensor(arg) && inputs_.back().requires_grad());
    }
    context_ = function_.attr("_context_type")();
    context().needs_input_grad = nb::tuple(needs);
  }

  nb::object run() {
    const bool recorded = needs_graph(inputs_);
    const nb::object result = forward();
    if (!recorded) return result;
    const bool single = !nb::isinstance<nb::tuple>(result);
    nb::list outputs(single ? nb::object(nb::make_tuple(result)) : result);
    connect(outputs);
    return single ? nb::object(outputs[0]) : nb::object(nb::tuple(outputs));
  }

 private:
  Context& context() const { return *nb::inst_ptr<Context>(context_); }

  nb::object forward() const {
    const NoGradGuard no_grad;
    if (!nb::cast<bool>(function_.attr("_has_setup_context"))) return function_.attr("forward")(context_, *args_);
    nb::object result = function_.attr("forward")(*args_);
    function_.attr("setup_context")(context_, args_, result);
    return result;
  }

  // Puts a node behind the tensors among `outputs`. An input that is returned as it is becomes a view of itself.
  void connect(nb::list& outputs) {
    const auto node = std::make_shared<FunctionNode>(nb::cast<std::string>(function_.attr("_node_name")), function_,
                                                     context_, edge_of_argument_);
    node->set_inputs(inputs_);
    std::vector<Tensor> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!is_tensor(outputs[i])) {
        node->add_output(OutputInfo{});
        continue;
      }
      const Tensor out = attach(*node, tensor_of(outputs[i]));
      made.push_back(out);
      outputs[i] = to_python(out);
    }
    for (const Tensor& tensor : context().to_save) node->save({tensor}, made);
    context().to_save.clear();
  }

  Tensor attach(Node& node, Tensor out) const {
    const bool is_input = contains(inputs_, out);
    if (contains(context().non_differentiable, out) || !is_floating_point(out.dtype())) {
      node.add_output(OutputInfo{out.shape(), out.dtype(), out.device()});
      return out;
    }
    if (contains(context().dirty, out)) {
      const Tensor after = out.detach();
      node.add_output(after);
      rebase_history(out, after);
      return out;
    }
    if (is_input || out.requires_grad()) out = out.detach();
    node.add_output(out);
    return out;
  }

  nb::object function_;
  nb::args args_;
  nb::object context_;
  std::vector<Tensor> inputs_;
  std::vector<int> edge_of_argument_;
};

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
  for (int i = 0; self.node != nullptr && i < self.node->num_saved(); ++i) saved.append(to_python(self.node->saved(i)));
  return nb::tuple(saved);
}

}  // namespace

void bind_function(const Binder& to) {
  nb::class_<Context>(to.module, "FunctionContext", nb::dynamic_attr(), nb::is_weak_referenceable(),
                      "What forward() leaves for backward().")
      .def(nb::init<>())
      .def("save_for_backward", [](Context& self, const nb::args& tensors) { self.to_save = tensors_of(tensors); })
      .def("mark_dirty", [](Context& self, const nb::args& tensors) { self.dirty = tensors_of(tensors); })
      .def("mark_non_differentiable",
           [](Context& self, const nb::args& tensors) { self.non_differentiable = tensors_of(tensors); })
      .def("set_materialize_grads", [](Context& self, bool value) { self.materialize_grads = value; })
      .def_prop_ro("saved_tensors", saved_tensors)
      .def_prop_ro("needs_input_grad", [](const Context& self) { return self.needs_input_grad; })
      .def("name", [](nb::handle self) { return self.type().attr("__name__"); });
  to.module.def("_apply", [](const nb::object& function, const nb::args& args) { return Call(function, args).run(); });
}

}  // namespace infeed::python
