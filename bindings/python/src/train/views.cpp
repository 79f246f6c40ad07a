// Other geometries of the same memory.

#include "binder.h"

namespace infeed::python {
namespace {

void bind_shapes(nb::class_<TensorObject>& cls) {
  cls.def("view",
          [](const Tensor& x, const nb::args& size) {
            if (size.size() == 1) {
              if (const std::optional<DType> dtype = to_dtype(size[0]); dtype && *dtype == x.dtype()) return x;
            }
            return x.view(sizes_of(size));
          })
      .def(
          "view_as", [](const Tensor& x, const Tensor& y) { return x.view(y.shape()); }, "other"_a)
      .def("reshape", [](const Tensor& x, const nb::args& size) { return x.reshape(sizes_of(size)); })
      .def(
          "reshape_as", [](const Tensor& x, const Tensor& y) { return x.reshape(y.shape()); }, "other"_a)
      .def("permute", [](const Tensor& x, const nb::args& dims) { return x.permute(sizes_of(dims)); })
      .def("expand", [](const Tensor& x, const nb::args& size) { return x.expand(sizes_of(size)); })
      .def(
          "expand_as", [](const Tensor& x, const Tensor& y) { return x.expand(y.shape()); }, "other"_a);
}

// Dimension source[i] goes to place destination[i]; the others keep their order.
Tensor movedim(const Tensor& x, const Sizes& source, const Sizes& destination) {
  if (source.ndim() != destination.ndim())
    throw RuntimeError(
        "movedim: Invalid source or destination dims: source and destination must have as many elements");
  const auto wrapped = [&](std::int64_t dim) { return dim < 0 ? dim + x.ndim() : dim; };
  std::vector<std::int64_t> order(static_cast<std::size_t>(x.ndim()), -1);
  std::vector<bool> moved(order.size(), false);
  for (int i = 0; i < source.ndim(); ++i) {
    order.at(static_cast<std::size_t>(wrapped(destination[i]))) = wrapped(source[i]);
    moved.at(static_cast<std::size_t>(wrapped(source[i]))) = true;
  }
  std::size_t next = 0;
  for (std::int64_t& dim : order) {
    if (dim >= 0) continue;
    while (moved[next]) ++next;
    dim = static_cast<std::int64_t>(next++);
  }
  return x.permute(Shape(order));
}

void bind_matrix_views(const Binder& to) {
  to.both(
      "transpose", [](const Tensor& x, int a, int b) { return x.transpose(a, b); }, "input"_a, "dim0"_a, "dim1"_a);
  for (const char* name : {"movedim", "moveaxis"}) to.both(name, movedim, "input"_a, "source"_a, "destination"_a);
  to.both(
      "swapaxes", [](const Tensor& x, int a, int b) { return x.transpose(a, b); }, "input"_a, "axis0"_a, "axis1"_a);
  to.both(
      "t", [](const Tensor& x) { return x.t(); }, "input"_a);
  to.both(
      "diagonal", [](const Tensor& x, std::int64_t offset, int a, int b) { return x.diagonal(offset, a, b); },
      "input"_a, "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1);
  to.tensor.def_prop_ro("T", [](const Tensor& x) {
    Dims dims;
    for (int i = x.ndim() - 1; i >= 0; --i) dims.push_back(i);
    return x.permute(dims);
  });
  to.tensor.def_prop_ro("mT", [](const Tensor& x) { return x.transpose(-2, -1); });
}

}  // namespace

void bind_views(const Binder& to) {
  bind_shapes(to.tensor);
  bind_matrix_views(to);
  to.module.def(
      "reshape", [](const Tensor& x, const Sizes& shape) { return x.reshape(shape); }, "input"_a, "shape"_a);
  to.module.def(
      "permute", [](const Tensor& x, const Sizes& dims) { return x.permute(dims); }, "input"_a, "dims"_a);
  to.both(
      "flatten", [](const Tensor& x, int start, int end) { return x.flatten(start, end); }, "input"_a,
      "start_dim"_a = 0, "end_dim"_a = -1);
  to.both(
      "ravel", [](const Tensor& x) { return x.flatten(); }, "input"_a);
  to.both(
      "unflatten", [](const Tensor& x, int dim, const Sizes& sizes) { return x.unflatten(dim, sizes); }, "input"_a,
      "dim"_a, "sizes"_a);
  to.both(
      "squeeze", [](const Tensor& x, std::optional<int> dim) { return dim ? x.squeeze(*dim) : x.squeeze(); }, "input"_a,
      "dim"_a = nb::none());
  to.both(
      "unsqueeze", [](const Tensor& x, int dim) { return x.unsqueeze(dim); }, "input"_a, "dim"_a);
  to.both(
      "select", [](const Tensor& x, int dim, std::int64_t index) { return x.select(dim, index); }, "input"_a, "dim"_a,
      "index"_a);
  to.both(
      "narrow",
      [](const Tensor& x, int dim, std::int64_t start, std::int64_t length) { return x.narrow(dim, start, length); },
      "input"_a, "dim"_a, "start"_a, "length"_a);
  to.tensor.def(
      "unfold",
      [](const Tensor& x, int dim, std::int64_t size, std::int64_t step) { return x.unfold(dim, size, step); },
      "dimension"_a, "size"_a, "step"_a);
  to.both(
      "as_strided",
      [](const Tensor& x, const Sizes& size, const Sizes& stride, std::optional<std::int64_t> offset) {
        return x.as_strided(size, Strides(stride.span()), offset);
      },
      "input"_a, "size"_a, "stride"_a, "storage_offset"_a = nb::none());
}

}  // namespace infeed::python
