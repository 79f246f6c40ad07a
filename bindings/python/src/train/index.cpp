// x[...] and x[...] = y.

#include <fmt/format.h>

#include "binder.h"
#include "data.h"
#include "infeed/train/autograd/elementwise.h"
#include "infeed/train/autograd/indexing.h"
#include "infeed/train/autograd/join.h"

namespace infeed::python {
namespace {

std::optional<std::int64_t> bound(PyObject* value) {
  if (value == Py_None) return std::nullopt;
  const Py_ssize_t number = PyNumber_AsSsize_t(value, nullptr);  // clipped, as Python's slices
  if (number == -1 && PyErr_Occurred() != nullptr) throw nb::python_error();
  return number;
}

Slice to_slice(nb::handle object) {
  auto* const slice = reinterpret_cast<PySliceObject*>(object.ptr());
  const std::int64_t step = bound(slice->step).value_or(1);
  if (step == 0) throw nb::value_error("slice step cannot be zero");
  if (step < 0) throw nb::value_error("step must be greater than zero");
  return {bound(slice->start), bound(slice->stop), step};
}

Index to_index(nb::handle object) {
  PyObject* o = object.ptr();
  if (PyBool_Check(o)) return o == Py_True;
  if (PyLong_Check(o)) return static_cast<std::int64_t>(PyLong_AsLongLong(o));
  if (PySlice_Check(o)) return to_slice(object);
  if (o == Py_None) return NewAxis{};
  if (o == Py_Ellipsis) return Ellipsis{};
  if (is_tensor(object)) return tensor_of(object);
  if (PyList_Check(o) || PyTuple_Check(o) || is_array(object)) {
    const Tensor places = tensor_of_data(object, {});
    return places.numel() == 0 ? places.to(DType::kInt64) : places;
  }
  if (PyIndex_Check(o)) return static_cast<std::int64_t>(PyNumber_AsSsize_t(o, PyExc_IndexError));
  throw IndexError(
      fmt::format("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
                  "indices (got {})",
                  Py_TYPE(o)->tp_name));
}

std::vector<Index> to_indices(nb::handle object) {
  std::vector<Index> indices;
  if (!PyTuple_Check(object.ptr())) {
    indices.push_back(to_index(object));
  } else {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object.ptr()); ++i)
      indices.push_back(to_index(PyTuple_GET_ITEM(object.ptr(), i)));
  }
  return indices;
}

void assign(Tensor x, nb::handle where, nb::handle value) {
  Tensor source;
  if (!to_operand(value, source)) source = tensor_of_data(value, x.dtype());
  x.index_put(to_indices(where), source);
}

nb::object iterate(const Tensor& x) {
  if (x.ndim() == 0) throw nb::type_error("iteration over a 0-d tensor");
  return nb::iter(nb::cast(unbind(x, 0)));
}

// One tensor per dimension; None means all of it.
std::vector<Tensor> tensors_of(const std::vector<std::optional<Tensor>>& given) {
  std::vector<Tensor> tensors;
  for (const std::optional<Tensor>& one : given) tensors.push_back(one.value_or(Tensor()));
  return tensors;
}
using Places = std::vector<std::optional<Tensor>>;

void bind_picking(const Binder& to) {
  to.both(
      "gather", [](const Tensor& x, int dim, const Tensor& index, bool) { return gather(x, dim, index); }, "input"_a,
      "dim"_a, "index"_a, nb::kw_only(), "sparse_grad"_a = false);
  to.both(
      "index_select", [](const Tensor& x, int dim, const Tensor& index) { return index_select(x, dim, index); },
      "input"_a, "dim"_a, "index"_a);
  to.both(
      "masked_select", [](const Tensor& x, const Tensor& mask) { return masked_select(x, mask); }, "input"_a, "mask"_a);
  to.both(
      "nonzero",
      [](const Tensor& x, bool as_tuple) -> nb::object {
        const Tensor places = nonzero(x);
        if (!as_tuple) return nb::cast(places);
        return nb::tuple(nb::cast(unbind(places, 1)));
      },
      "input"_a, nb::kw_only(), "as_tuple"_a = false);
  to.both("argwhere", [](const Tensor& x) { return nonzero(x); });
}

// A source may be a number.
Tensor source_like(const Tensor& index, const Tensor& x, const Operand& source) {
  return source.tensor.is_wrapped_number() ? source.tensor.to(x.dtype()).expand(index.shape()) : source.tensor;
}

void bind_scatter(const Binder& to) {
  to.both(
      "scatter",
      [](const Tensor& x, int dim, const Tensor& index, const Operand& source) {
        return scatter(x, dim, index, source_like(index, x, source));
      },
      "input"_a, "dim"_a, "index"_a, "src"_a);
  to.tensor.def(
      "scatter_",
      [](Tensor x, int dim, const Tensor& index, const Operand& source) {
        const Tensor from = source_like(index, x, source);
        return in_place(x, {from}, [&](const Tensor& t) { return scatter(t, dim, index, from); });
      },
      "dim"_a, "index"_a, "src"_a);
  to.both("scatter_add", scatter_add, "input"_a, "dim"_a, "index"_a, "src"_a);
  to.tensor.def(
      "scatter_add_",
      [](Tensor x, int dim, const Tensor& index, const Tensor& source) {
        return in_place(x, {source}, [&](const Tensor& t) { return scatter_add(t, dim, index, source); });
      },
      "dim"_a, "index"_a, "src"_a);
}

void bind_fill_and_put(const Binder& to) {
  to.both("index_add", index_add, "input"_a, "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = Scalar(1));
  to.tensor.def(
      "index_add_",
      [](Tensor x, int dim, const Tensor& index, const Tensor& source, const Scalar& alpha) {
        return in_place(x, {source}, [&](const Tensor& t) { return index_add(t, dim, index, source, alpha); });
      },
      "dim"_a, "index"_a, "source"_a, nb::kw_only(), "alpha"_a = Scalar(1));
  to.both(
      "masked_fill",
      [](const Tensor& x, const Tensor& mask, const Operand& value) { return masked_fill(x, mask, value); }, "input"_a,
      "mask"_a, "value"_a);
  to.tensor.def(
      "masked_fill_",
      [](Tensor x, const Tensor& mask, const Operand& value) {
        return in_place(x, {value.tensor}, [&](const Tensor& t) { return masked_fill(t, mask, value); });
      },
      "mask"_a, "value"_a);
  to.both(
      "index_put",
      [](const Tensor& x, const Places& indices, const Tensor& values, bool accumulate) {
        return index_put(x, tensors_of(indices), values, accumulate);
      },
      "input"_a, "indices"_a, "values"_a, "accumulate"_a = false);
  to.tensor.def(
      "index_put_",
      [](Tensor x, const Places& indices, const Tensor& values, bool accumulate) {
        return in_place(x, {values},
                        [&](const Tensor& t) { return index_put(t, tensors_of(indices), values, accumulate); });
      },
      "indices"_a, "values"_a, "accumulate"_a = false);
  to.module.def(
      "one_hot", [](const Tensor& x, std::int64_t n) { return one_hot(x, n); }, "tensor"_a, "num_classes"_a = -1);
}

}  // namespace

void bind_index(const Binder& to) {
  to.tensor
      .def(
          "__getitem__",
          [](const Tensor& x, nb::handle where) {
            if (PyLong_CheckExact(where.ptr()) && x.ndim() > 0) return x.select(0, PyLong_AsLongLong(where.ptr()));
            return x.index(to_indices(where));
          },
          nb::arg().none())
      .def("__setitem__", assign, nb::arg().none(), nb::arg())
      .def("__iter__", iterate)
      .def("__contains__", [](const Tensor& x, const Operand& value) { return any(eq(x, value)).item<bool>(); });
  bind_picking(to);
  bind_scatter(to);
  bind_fill_and_put(to);
}

}  // namespace infeed::python
