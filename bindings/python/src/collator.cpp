#include "collator.h"

#include <algorithm>
#include <cstring>

namespace infeed::python {
namespace nb = nanobind;
using Kind = PlanNode::Kind;
namespace {

constexpr std::size_t kAlign = 128;
enum Code : std::uint8_t { kInt = 0, kFloat = 2, kBool = 6 };

std::size_t aligned(std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

bool has_shape(const LeafView& view, const PlanNode& node) {
  return static_cast<std::size_t>(view.ndim) == node.shape.size() &&
         std::equal(node.shape.begin(), node.shape.end(), view.shape) && same(view.dtype, node.dtype);
}

bool put_tensor(PlanNode& node, PyObject* sample, std::byte* out) {
  LeafView view;
  const Torch& torch = *Torch::loaded();
  if (!torch.borrow(sample, view) || !has_shape(view, node) || !torch.is_plain(sample, view.dtype)) return false;
  view.copy_to(out);
  return true;
}

bool put_array(PlanNode& node, PyObject* sample, std::byte* out) {
  LeafView view;
  const NumPy& numpy = *NumPy::loaded();
  if (NumPy::descr_of(sample) != node.descr.ptr()) {
    const auto dtype = numpy.dtype_of(sample);
    if (!dtype || !same(*dtype, node.dtype)) return false;
  }
  if (!numpy.borrow(sample, node.dtype, view) || !has_shape(view, node)) return false;
  view.copy_to(out);
  return true;
}

bool put_int(PyObject* sample, std::byte* out) {
  int overflow = 0;
  const std::int64_t value = PyLong_AsLongLongAndOverflow(sample, &overflow);
  if (overflow != 0) return false;
  std::memcpy(out, &value, sizeof value);
  return true;
}

bool put_node(PlanNode& node, PyObject* sample, std::size_t row);

bool put_sequence(PlanNode& node, PyObject* sample, std::size_t row) {
  const bool is_list = node.kind == Kind::kList;
  for (std::size_t i = 0; i < node.children.size(); ++i) {  // a list may shrink while the GIL is given up
    if (static_cast<std::size_t>(Py_SIZE(sample)) != node.children.size()) return false;
    const auto at = static_cast<Py_ssize_t>(i);
    const nb::object item = nb::borrow(is_list ? PyList_GET_ITEM(sample, at) : PyTuple_GET_ITEM(sample, at));
    if (!put_node(node.children[i], item.ptr(), row)) return false;
  }
  return static_cast<std::size_t>(Py_SIZE(sample)) == node.children.size();
}

nb::object item_of(const PlanNode& node, PyObject* sample, const nb::object& key) {
  if (node.kind == Kind::kDict) {
    PyObject* const item = PyDict_GetItemWithError(sample, key.ptr());
    if (item == nullptr && PyErr_Occurred()) throw nb::python_error();
    return nb::borrow(item);
  }
  PyObject* const item = PyObject_GetItem(sample, key.ptr());
  if (item == nullptr && !PyErr_ExceptionMatches(PyExc_Exception)) throw nb::python_error();
  PyErr_Clear();  // odd: torch asks again, and raises
  return nb::steal(item);
}

bool put_mapping(PlanNode& node, PyObject* sample, std::size_t row) {
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    const nb::object item = item_of(node, sample, node.keys[i]);
    if (!item.is_valid() || !put_node(node.children[i], item.ptr(), row)) return false;
  }
  if (row == 0 && node.kind == Kind::kMapping) node.shell = nb::borrow(sample);
  return true;
}

bool put_node(PlanNode& node, PyObject* sample, std::size_t row) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(sample)) != node.type.ptr()) return false;
  std::byte* const out = node.rows + row * node.sample_bytes;
  switch (node.kind) {
    case Kind::kTensor: return put_tensor(node, sample, out);
    case Kind::kArray: return put_array(node, sample, out);
    case Kind::kInt: return put_int(sample, out);
    case Kind::kFloat: {
      const double value = PyFloat_AS_DOUBLE(sample);
      std::memcpy(out, &value, sizeof value);
      return true;
    }
    case Kind::kBool: *out = std::byte{sample == Py_True}; return true;
    case Kind::kScalar: std::memcpy(out, NumPy::scalar_value(sample), node.sample_bytes); return true;
    case Kind::kText:
      if (PyList_Append(node.texts.ptr(), sample) != 0) throw nb::python_error();
      return true;
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kNamed: return put_sequence(node, sample, row);
    case Kind::kDict:
    case Kind::kMapping: return put_mapping(node, sample, row);
  }
  return false;
}

nb::list keys_of(PyObject* mapping) {
  PyObject* const keys = PySequence_List(mapping);  // by its __iter__, as default_collate does
  if (keys == nullptr) throw nb::python_error();
  return nb::steal<nb::list>(keys);
}

/// The same keys: 1 and True and 1.0 are equal, but not the same.
bool same_keys(const PlanNode& node, PyObject* mapping) {
  const nb::list keys = keys_of(mapping);
  if (nb::len(keys) != node.keys.size()) return false;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    const nb::object key = keys[i];
    if (key.is(node.keys[i])) continue;
    if (Py_TYPE(key.ptr()) != Py_TYPE(node.keys[i].ptr()) || !key.equal(node.keys[i])) return false;
  }
  return true;
}

bool begins_node(PlanNode& node, PyObject* sample) {
  if (reinterpret_cast<PyObject*>(Py_TYPE(sample)) != node.type.ptr()) return false;
  if (node.kind == Kind::kDict || node.kind == Kind::kMapping) {
    if (!same_keys(node, sample)) return false;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const nb::object item = item_of(node, sample, node.keys[i]);
      if (!item.is_valid() || !begins_node(node.children[i], item.ptr())) return false;
    }
  } else if (!node.is_leaf()) {
    if (static_cast<std::size_t>(Py_SIZE(sample)) != node.children.size()) return false;
    for (std::size_t i = 0; i < node.children.size(); ++i)
      if (!begins_node(node.children[i], PySequence_Fast_ITEMS(sample)[i])) return false;
  }
  return true;
}

void clear_node(PlanNode& node) {
  if (node.kind == Kind::kText) node.texts = nb::list();
  node.shell.reset();
  for (PlanNode& child : node.children) clear_node(child);
}

/// collections.namedtuple or typing.NamedTuple as such: nothing looks at the fields' values.
bool is_plain_named(nb::handle type) {
  return nb::len(nb::object(type.attr("__mro__"))) == 3 && nb::hasattr(type, "_make") && nb::hasattr(type, "_replace");
}

bool is_standard_mapping(nb::handle type) {
  static PyObject* const collections = nb::module_::import_("collections").release().ptr();
  const nb::handle module(collections);
  return type.is(nb::object(module.attr("OrderedDict"))) || type.is(nb::object(module.attr("defaultdict")));
}

}  // namespace

std::unique_ptr<Plan> Plan::learn(nb::handle sample) {
  auto plan = std::unique_ptr<Plan>(new Plan);
  if (!plan->add(plan->root_, sample)) return nullptr;
  if (plan->needs_values_ && Torch::loaded() == nullptr) return nullptr;
  plan->list_leaves(plan->root_);
  return plan;
}

bool Plan::add(PlanNode& node, nb::handle sample) {
  node.type = nb::borrow(reinterpret_cast<PyObject*>(Py_TYPE(sample.ptr())));
  types_.push_back(node.type);
  PyObject* const object = sample.ptr();
  if (PyUnicode_CheckExact(object) || PyBytes_CheckExact(object)) {
    node.kind = Kind::kText;
    node.texts = nb::list();
    constant_ = false;
    return true;
  }
  if (PyTuple_Check(object) || PyList_CheckExact(object)) return add_container(node, sample);
  if (PyDict_Check(object)) return add_mapping(node, sample);
  return add_dense(node, sample);
}

bool Plan::add_container(PlanNode& node, nb::handle sample) {
  if (PyList_CheckExact(sample.ptr())) {
    node.kind = Kind::kList;
  } else if (PyTuple_CheckExact(sample.ptr())) {
    node.kind = Kind::kTuple;
  } else if (nb::hasattr(sample, "_fields") && is_plain_named(node.type)) {
    node.kind = Kind::kNamed;
  } else {
    return false;
  }
  node.children.resize(static_cast<std::size_t>(Py_SIZE(sample.ptr())));
  for (std::size_t i = 0; i < node.children.size(); ++i)
    if (!add(node.children[i], PySequence_Fast_ITEMS(sample.ptr())[i])) return false;
  return true;
}

bool Plan::add_mapping(PlanNode& node, nb::handle sample) {
  node.kind = PyDict_CheckExact(sample.ptr()) ? Kind::kDict : Kind::kMapping;
  if (node.kind == Kind::kMapping) {
    constant_ = false;
    if (!is_standard_mapping(node.type)) needs_values_ = true;
  }
  const nb::list keys = keys_of(sample.ptr());
  node.children.resize(nb::len(keys));
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    node.keys.push_back(nb::object(keys[i]));
    const nb::object item = item_of(node, sample.ptr(), node.keys[i]);
    if (!item.is_valid() || !add(node.children[i], item)) return false;
  }
  return true;
}

bool Plan::add_dense(PlanNode& node, nb::handle sample) {
  PyObject* const object = sample.ptr();
  LeafView view;
  const Torch* const torch = Torch::loaded();
  const NumPy* const numpy = NumPy::loaded();
  if (PyBool_Check(object)) {
    node.kind = Kind::kBool, node.dtype = {Code::kBool, 8, 1};
  } else if (PyLong_CheckExact(object)) {
    node.kind = Kind::kInt, node.dtype = {Code::kInt, 64, 1};
  } else if (PyFloat_CheckExact(object)) {
    node.kind = Kind::kFloat, node.dtype = {Code::kFloat, 64, 1};
  } else if (torch != nullptr && torch->is_tensor(object)) {
    node.kind = Kind::kTensor;
    if (!torch->is_dense(object) || !torch->borrow(object, view)) return false;
    node.dtype = view.dtype;
  } else if (numpy != nullptr && numpy->is_array(object)) {
    node.kind = Kind::kArray;
    const auto dtype = numpy->dtype_of(object);
    if (!dtype || !numpy->borrow(object, *dtype, view)) return false;
    node.dtype = *dtype;
    node.descr = nb::borrow(NumPy::descr_of(object));
  } else if (const auto dtype = numpy ? numpy->scalar_dtype(Py_TYPE(object)) : std::nullopt) {
    node.kind = Kind::kScalar, node.dtype = *dtype;
  } else {
    return false;
  }
  node.shape.assign(view.shape, view.shape + view.ndim);
  node.sample_bytes = item_bytes(node.dtype);
  for (const std::int64_t dim : node.shape) node.sample_bytes *= static_cast<std::size_t>(dim);
  return true;
}

void Plan::list_leaves(PlanNode& node) {
  if (node.is_leaf() && node.is_dense()) leaves_.push_back(&node);
  for (PlanNode& child : node.children) list_leaves(child);
}

std::size_t Plan::bytes(std::size_t count) const {
  std::size_t total = 0;
  for (const PlanNode* leaf : leaves_) total += aligned(count * leaf->sample_bytes);
  return total;
}

void Plan::place(std::byte* memory, std::size_t count) {
  clear();
  for (PlanNode* leaf : leaves_) {
    leaf->rows = memory;
    memory += aligned(count * leaf->sample_bytes);
  }
}

bool Plan::begins(nb::handle sample) { return begins_node(root_, sample.ptr()); }

bool Plan::put(nb::handle sample, std::size_t row) { return put_node(root_, sample.ptr(), row); }

void Plan::clear() { clear_node(root_); }

}  // namespace infeed::python
