#include <cstring>

#include "collator.h"

namespace infeed::python {
namespace nb = nanobind;
using Kind = PlanNode::Kind;
namespace {

nb::object codec(const char* name) { return nb::module_::import_("infeed._codec").attr(name); }

/// How the children of a container are combined, for the batch and for a sample.
using MakeChild = std::function<nb::object(const PlanNode&)>;

nb::list list_of(const PlanNode& node, const MakeChild& make) {
  nb::list items;
  for (const PlanNode& child : node.children) items.append(make(child));
  return items;
}

nb::dict dict_of(const PlanNode& node, const MakeChild& make) {
  nb::dict items;
  for (std::size_t i = 0; i < node.children.size(); ++i) items[node.keys[i]] = make(node.children[i]);
  return items;
}

nb::object call_with(nb::handle callable, const nb::list& items) { return callable(*nb::tuple(items)); }

/// default_collate zips the columns of sequences to tuples, and lists those of mappings and of the batch itself.
nb::object text_column(const PlanNode& node, const PlanNode* parent) {
  const bool listed = parent == nullptr || parent->kind == Kind::kDict || parent->kind == Kind::kMapping;
  return listed ? nb::object(node.texts) : nb::object(nb::tuple(node.texts));
}

nb::object collated_node(const PlanNode& node, const PlanNode* parent, const Plan::MakeLeaf& make_leaf) {
  if (node.kind == Kind::kText) return text_column(node, parent);
  if (node.is_leaf()) return make_leaf(node);
  const MakeChild child = [&](const PlanNode& inner) { return collated_node(inner, &node, make_leaf); };
  if (node.kind == Kind::kDict) return dict_of(node, child);
  if (node.kind == Kind::kMapping) return codec("collated_mapping")(node.shell, dict_of(node, child));
  if (node.kind == Kind::kNamed) return call_with(node.type, list_of(node, child));
  return list_of(node, child);
}

/// A leaf's row in memory of its own.
nb::object rebuild_dense(const PlanNode& node, const std::byte* row) {
  const nb::object bytes = nb::steal(
      PyByteArray_FromStringAndSize(reinterpret_cast<const char*>(row), static_cast<Py_ssize_t>(node.sample_bytes)));
  if (!bytes.is_valid()) throw nb::python_error();
  auto* const data = reinterpret_cast<std::byte*>(PyByteArray_AS_STRING(bytes.ptr()));
  const auto strides = contiguous_strides(node.shape);
  const LeafShape shape{node.dtype, node.shape, strides};
  if (node.kind == Kind::kTensor) {
    const OwnerScope owner(bytes);
    return Torch::loaded()->make(data, shape, *owner);
  }
  const nb::object array = NumPy::loaded()->make(data, shape, bytes);
  return node.kind == Kind::kScalar ? array[nb::tuple()] : array;
}

nb::object rebuild_leaf(const PlanNode& node, std::size_t row) {
  if (node.kind == Kind::kText) return node.texts[row];
  const std::byte* const data = node.rows + row * node.sample_bytes;
  if (node.kind == Kind::kBool) return nb::bool_(*data != std::byte{0});
  if (node.kind == Kind::kInt) {
    std::int64_t value = 0;
    std::memcpy(&value, data, sizeof value);
    return nb::int_(value);
  }
  if (node.kind == Kind::kFloat) {
    double value = 0;
    std::memcpy(&value, data, sizeof value);
    return nb::float_(value);
  }
  return rebuild_dense(node, data);
}

nb::object rebuild_node(const PlanNode& node, std::size_t row) {
  if (node.is_leaf()) return rebuild_leaf(node, row);
  const MakeChild child = [row](const PlanNode& inner) { return rebuild_node(inner, row); };
  if (node.kind == Kind::kDict) return dict_of(node, child);
  if (node.kind == Kind::kMapping) return codec("copied_mapping")(node.shell, dict_of(node, child));
  const nb::list items = list_of(node, child);
  if (node.kind == Kind::kNamed) return call_with(node.type, items);
  return node.kind == Kind::kList ? nb::object(items) : nb::object(nb::tuple(items));
}

}  // namespace

nb::object Plan::rebuild(std::size_t row) const { return rebuild_node(root_, row); }

nb::object Plan::collated(const MakeLeaf& make_leaf) const { return collated_node(root_, nullptr, make_leaf); }

}  // namespace infeed::python
