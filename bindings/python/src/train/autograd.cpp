// The graph: nodes, hooks, backward() and grad().

#include <fmt/format.h>

#include <map>
#include <string>

#include "binder.h"
#include "infeed/train/autograd/anomaly.h"
#include "infeed/train/autograd/backward.h"
#include "infeed/train/autograd/grad_mode.h"
#include "node_object.h"

namespace infeed::python {
namespace {

PyObject* node_type = nullptr;

// AddBackward0, ...: subclasses of Node, made when a node of that name is first seen. They live as long as the process.
nb::handle type_named(const std::string& name) {
  static auto* const types = new std::map<std::string, nb::object>;
  nb::object& type = (*types)[name];
  if (!type.is_valid()) {
    nb::dict attributes;
    attributes["__module__"] = "infeed.train.autograd";
    type =
        nb::handle(reinterpret_cast<PyObject*>(&PyType_Type))(name, nb::make_tuple(nb::handle(node_type)), attributes);
  }
  return type;
}

nb::tuple next_functions(const NodeObject& self) {
  nb::list edges;
  for (const Edge& edge : self.node->next()) edges.append(nb::make_tuple(node_object(edge.node), edge.output_nr));
  return nb::tuple(edges);
}

// ---- Hooks: Python's functions, called with the GIL ----

// f(gradient) -> another one, or None.
TensorHook tensor_hook(nb::object function) {
  return [held = keep_alive(std::move(function))](const Tensor& grad) -> Tensor {
    const nb::gil_scoped_acquire locked;
    const nb::object changed = (*static_cast<nb::object*>(held.get()))(grad);
    if (changed.is_none()) return {};
    if (!is_tensor(changed))
      throw nb::type_error(
          fmt::format("expected Variable, but hook returned '{}'", Py_TYPE(changed.ptr())->tp_name).c_str());
    return tensor_of(changed);
  };
}

nb::tuple tuple_of(std::span<const Tensor> tensors) {
  nb::list list;
  for (const Tensor& tensor : tensors) list.append(to_python(tensor));
  return nb::tuple(list);
}

void replace(std::span<Tensor> grads, const nb::object& changed) {
  if (changed.is_none()) return;
  const nb::tuple given = nb::isinstance<nb::tuple>(changed) ? nb::borrow<nb::tuple>(changed) : nb::make_tuple(changed);
  if (given.size() != grads.size())
    throw RuntimeError(fmt::format("hook has returned an incorrect number of values (got {}, but expected {})",
                                   given.size(), grads.size()));
  for (std::size_t i = 0; i < grads.size(); ++i) grads[i] = given[i].is_none() ? Tensor() : tensor_of(given[i]);
}

struct NodeHookHandle {
  std::weak_ptr<Node> node;
  std::uint64_t id;
  void remove() const {
    if (const auto alive = node.lock()) alive->remove_hook(id);
  }
};

NodeHookHandle register_node_hook(const NodeObject& self, nb::object function) {
  auto held = keep_alive(std::move(function));
  return {self.node, self.node->register_hook([held](std::span<Tensor> inputs, std::span<const Tensor> outputs) {
            const nb::gil_scoped_acquire locked;
            const nb::tuple sent = tuple_of({inputs.data(), inputs.size()});
            replace(inputs, (*static_cast<nb::object*>(held.get()))(sent, tuple_of(outputs)));
          })};
}

NodeHookHandle register_node_prehook(const NodeObject& self, nb::object function) {
  auto held = keep_alive(std::move(function));
  return {self.node, self.node->register_prehook([held](std::span<Tensor> outputs) {
            const nb::gil_scoped_acquire locked;
            replace(outputs, (*static_cast<nb::object*>(held.get()))(tuple_of({outputs.data(), outputs.size()})));
          })};
}

template <class Handle>
void bind_handle(nb::module_& module, const char* name) {
  nb::class_<Handle>(module, name, "Takes a hook away again.")
      .def("remove", [](Handle& self) { self.remove(); })
      .def("__enter__", [](nb::object self) { return self; })
      .def("__exit__", [](Handle& self, const nb::args&) { self.remove(); });
}

void bind_hooks(const Binder& to) {
  bind_handle<HookHandle>(to.module, "HookHandle");
  bind_handle<NodeHookHandle>(to.module, "NodeHookHandle");
  to.tensor.def(
      "register_hook",
      [](Tensor x, nb::object hook) {
        if (!x.requires_grad()) throw RuntimeError("cannot register a hook on a tensor that doesn't require gradient");
        return x.register_hook(tensor_hook(std::move(hook)));
      },
      "hook"_a);
  to.tensor.def(
      "register_post_accumulate_grad_hook",
      [](Tensor x, nb::object hook) {
        if (!x.requires_grad()) throw RuntimeError("cannot register a hook on a tensor that doesn't require gradient");
        if (!x.is_leaf()) throw RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors");
        return x.register_post_accumulate_grad_hook([held = keep_alive(std::move(hook))](const Tensor& leaf) {
          const nb::gil_scoped_acquire locked;
          (*static_cast<nb::object*>(held.get()))(leaf);
        });
      },
      "hook"_a);
}

// ---- Running it ----

using Tensors = std::vector<Tensor>;
using Gradients = std::vector<std::optional<Tensor>>;

Tensors defined_or_not(const Gradients& given) {
  Tensors tensors;
  for (const std::optional<Tensor>& one : given) tensors.push_back(one.value_or(Tensor()));
  return tensors;
}

void run_backward(const Tensors& tensors, const Gradients& gradients, bool retain, bool create, const Tensors& inputs) {
  const Tensors grads = defined_or_not(gradients);
  const nb::gil_scoped_release unlocked;
  backward(tensors, grads, {.retain_graph = retain, .create_graph = create}, inputs);
}

Tensors run_grad(const Tensors& outputs, const Tensors& inputs, const Gradients& gradients,
                 const GradOptions& options) {
  const Tensors grads = defined_or_not(gradients);
  const nb::gil_scoped_release unlocked;
  return grad(outputs, inputs, grads, options);
}

void bind_runs(nb::module_& module) {
  module.def("_backward", run_backward, "tensors"_a, "gradients"_a, "retain_graph"_a, "create_graph"_a, "inputs"_a);
  module.def(
      "_grad",
      [](const Tensors& outputs, const Tensors& inputs, const Gradients& gradients, bool retain, bool create,
         bool allow_unused, bool materialize) {
        return nb::tuple(nb::cast(run_grad(outputs, inputs, gradients, {retain, create, allow_unused, materialize})));
      },
      "outputs"_a, "inputs"_a, "gradients"_a, "retain_graph"_a, "create_graph"_a, "allow_unused"_a,
      "materialize_grads"_a);
}

}  // namespace

nb::object node_object(const std::shared_ptr<Node>& node) {
  if (node == nullptr) return nb::none();
  nb::object object = nb::inst_alloc(type_named(std::string(node->name())));
  new (nb::inst_ptr<NodeObject>(object)) NodeObject{node};
  nb::inst_mark_ready(object);
  return object;
}

void bind_autograd(const Binder& to) {
  const auto type =
      nb::class_<NodeObject>(to.module, "Node", "A recorded operation.")
          .def("name", [](const NodeObject& self) { return std::string(self.node->name()); })
          .def_prop_ro("next_functions", next_functions)
          .def_prop_ro("variable", [](const NodeObject& self) { return self.node->variable(); })
          .def_prop_ro("saved_tensors",
                       [](const NodeObject& self) {
                         nb::list saved;
                         for (int i = 0; i < self.node->num_saved(); ++i) saved.append(to_python(self.node->saved(i)));
                         return nb::tuple(saved);
                       })
          .def("_sequence_nr", [](const NodeObject& self) { return self.node->number(); })
          .def("register_hook", register_node_hook)
          .def("register_prehook", register_node_prehook)
          .def(
              "__eq__",
              [](const NodeObject& self, const nb::object& other) {
                return nb::isinstance<NodeObject>(other) && nb::inst_ptr<NodeObject>(other)->node == self.node;
              },
              nb::arg().none())
          .def("__hash__", [](const NodeObject& self) { return reinterpret_cast<Py_hash_t>(self.node.get()) >> 4; })
          .def("__repr__", [](const NodeObject& self) {
            return fmt::format("<{} object at {}>", self.node->name(), static_cast<const void*>(self.node.get()));
          });
  node_type = type.ptr();
  bind_hooks(to);
  bind_runs(to.module);
}

}  // namespace infeed::python
