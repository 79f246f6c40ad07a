// The class Tensor: what it says of itself, its place in the graph, conversions. Operations are bound by kind beside it.

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "binder.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/autograd/node.h"
#include "infeed/train/tensor/storage.h"
#include "node_object.h"

namespace infeed::python {
namespace {

constexpr const char* kNotALeaf =
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead.";

Tensor grad_of(const Tensor& x) {
  const Tensor& grad = x.grad();
  if (!grad.defined() && !x.is_leaf() && !x.retains_grad() && PyErr_WarnEx(PyExc_UserWarning, kNotALeaf, 1) != 0)
    throw nb::python_error();
  return grad;
}

void set_grad(const Tensor& self, const nb::object& grad) {
  Tensor x = self;
  if (grad.is_none()) return x.set_grad({});
  if (!is_tensor(grad))
    throw nb::type_error(fmt::format("assigned grad expected to be a Tensor or None but got grad of type {}",
                                     Py_TYPE(grad.ptr())->tp_name)
                             .c_str());
  const Tensor& given = tensor_of(grad);
  if (given.is_same(x)) throw RuntimeError("can't assign Variable as its own grad");
  if (given.shape() != x.shape())
    throw RuntimeError(
        fmt::format("attempting to assign a gradient of size '{}' to a tensor of size '{}'. Please ensure "
                    "that the gradient and the tensor are the same size",
                    given.shape().str(), x.shape().str()));
  if (given.dtype() != x.dtype())
    throw RuntimeError(
        fmt::format("attempting to assign a gradient with dtype '{}' to a tensor with grad_dtype '{}'. The "
                    "gradient must match the tensor's dtype.",
                    to_string(given.dtype()), scalar_type_name(x.dtype())));
  if (given.device() != x.device())
    throw RuntimeError(
        fmt::format("attempting to assign a gradient with device type '{}' to a tensor with device type "
                    "'{}'. Please ensure that the gradient and the tensor are on the same device",
                    device_name(given.device()), device_name(x.device())));
  x.set_grad(given);
}

void bind_sizes(nb::class_<TensorObject>& cls) {
  cls.def_prop_ro(
         "shape", [](const Tensor& x) { return size_tuple(x.shape()); },
         nb::sig("def shape(self) -> infeed.train._types.Size"))
      .def(
          "size",
          [](const Tensor& x, const std::optional<int>& dim) -> nb::object {
            if (dim) return nb::int_(x.size(*dim));
            return size_tuple(x.shape());
          },
          "dim"_a = nb::none(), nb::sig("def size(self, dim: int | None = None) -> typing.Any"))
      .def(
          "stride",
          [](const Tensor& x, const std::optional<int>& dim) -> nb::object {
            if (!dim) return plain_tuple(x.strides());
            const int at = *dim < 0 ? *dim + x.ndim() : *dim;
            if (at < 0 || at >= x.ndim()) throw nb::index_error("Dimension out of range");
            return nb::int_(x.strides()[at]);
          },
          "dim"_a = nb::none(), nb::sig("def stride(self, dim: int | None = None) -> typing.Any"))
      .def_prop_ro("ndim", [](const Tensor& x) { return x.ndim(); })
      .def("dim", [](const Tensor& x) { return x.ndim(); })
      .def("numel", [](const Tensor& x) { return x.numel(); })
      .def("nelement", [](const Tensor& x) { return x.numel(); })
      .def("element_size", [](const Tensor& x) { return itemsize(x.dtype()); })
      .def_prop_ro("itemsize", [](const Tensor& x) { return itemsize(x.dtype()); })
      .def_prop_ro("nbytes", [](const Tensor& x) { return x.nbytes(); });
}

void bind_properties(nb::class_<TensorObject>& cls) {
  cls.def_prop_ro("dtype", [](const Tensor& x) { return x.dtype(); })
      .def_prop_ro("device", [](const Tensor& x) { return x.device(); })
      .def_prop_ro("is_cuda", [](const Tensor& x) { return x.device().type == DeviceType::kCUDA; })
      .def_prop_ro("is_meta", [](const Tensor& x) { return x.is_meta(); })
      .def_prop_ro("is_cpu", [](const Tensor& x) { return x.device().type == DeviceType::kCPU; })
      .def_prop_ro("is_sparse", [](const Tensor&) { return false; })
      .def("is_floating_point", [](const Tensor& x) { return is_floating_point(x.dtype()); })
      .def("is_complex", [](const Tensor&) { return false; })
      .def("is_pinned", [](const Tensor&) { return false; })
      .def("type", [](const Tensor& x) { return std::string(legacy_name(x.dtype())); })
      .def(
          "is_contiguous", [](const Tensor& x, const nb::object& format) { return x.is_contiguous(to_format(format)); },
          "memory_format"_a = nb::none())
      .def("data_ptr", [](const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.device_ptr()); })
      .def("storage_offset", [](const Tensor& x) { return x.storage_offset(); })
      .def("_storage_ptr", [](const Tensor& x) { return reinterpret_cast<std::uintptr_t>(x.storage()->address()); })
      .def("_storage_nbytes", [](const Tensor& x) { return x.storage()->nbytes(); })
      .def_prop_ro("_version", [](const Tensor& x) { return x.version(); })
      .def("is_inference", [](const Tensor& x) { return x.is_inference(); })
      .def("is_set_to", [](const Tensor& x, const Tensor& y) {
        return x.device_ptr() == y.device_ptr() && x.device() == y.device() && x.shape() == y.shape() &&
               x.strides() == y.strides();
      });
}

void bind_graph(nb::class_<TensorObject>& cls) {
  cls.def_prop_rw(
         "requires_grad", [](const Tensor& x) { return x.requires_grad(); },
         [](Tensor x, bool value) { x.set_requires_grad(value); })
      .def(
          "requires_grad_", [](Tensor x, bool value) { return x.set_requires_grad(value); }, "requires_grad"_a = true)
      .def_prop_ro("is_leaf", [](const Tensor& x) { return x.is_leaf(); })
      .def_prop_rw("grad", grad_of, set_grad, nb::for_setter(nb::arg().none()))
      .def_prop_ro("grad_fn", [](const Tensor& x) { return node_object(x.grad_fn()); })
      .def_prop_ro("output_nr", [](const Tensor& x) { return x.output_nr(); })
      .def("retain_grad", [](Tensor x) { x.retain_grad(); })
      .def_prop_ro("retains_grad", [](const Tensor& x) { return x.retains_grad(); })
      .def("_is_view", [](const Tensor& x) { return x.is_view(); })
      .def_prop_ro("_base", [](const Tensor& x) { return x.base(); })
      .def("detach", [](const Tensor& x) { return x.detach(); })
      .def("detach_", [](Tensor x) { return x.detach_(); })
      .def_prop_rw(
          "data", [](const Tensor& x) { return x.variable_data(); }, [](Tensor x, const Tensor& y) { x.set_data(y); });
}

// ---- Values ----

void check_one(const Tensor& x) {
  if (x.numel() != 1)
    throw RuntimeError(fmt::format("a Tensor with {} elements cannot be converted to Scalar", x.numel()));
}

Scalar item(const Tensor& x) {
  check_one(x);
  return x.item_scalar();
}

bool truth(const Tensor& x) {
  if (x.numel() == 0) throw RuntimeError("Boolean value of Tensor with no values is ambiguous");
  if (x.numel() > 1) throw RuntimeError("Boolean value of Tensor with more than one value is ambiguous");
  const Scalar value = x.item_scalar();
  return value.is_float() ? value.to_double() != 0.0 : value.to_int() != 0;
}

std::int64_t as_index(const Tensor& x) {
  if (x.numel() != 1 || is_floating_point(x.dtype()))
    throw nb::type_error("only integer tensors of a single element can be converted to an index");
  return x.item_scalar().to_int();
}

template <class T>
nb::object nested(const T* values, const Shape& shape, int dim) {
  if (dim == shape.ndim()) return nb::cast(*values);
  std::int64_t inner = 1;
  for (int i = dim + 1; i < shape.ndim(); ++i) inner *= shape[i];
  nb::object list = nb::steal(PyList_New(shape[dim]));
  for (std::int64_t i = 0; i < shape[dim]; ++i)
    PyList_SET_ITEM(list.ptr(), i, nested(values + i * inner, shape, dim + 1).release().ptr());
  return list;
}

// Python's own rules: ValueError for NaN, OverflowError for infinity, any size for the rest.
nb::int_ whole(const Tensor& x) {
  const Scalar value = item(x);
  if (!value.is_float()) return nb::int_(value.to_int());
  auto number = nb::steal<nb::int_>(PyLong_FromDouble(value.to_double()));
  if (!number.is_valid()) nb::raise_python_error();
  return number;
}

nb::object tolist(const Tensor& x) {
  const NoGradGuard no_grad;
  const Tensor host = x.to(TensorOptions(DeviceId{}));
  if (x.dtype() == DType::kBool) return nested(host.contiguous().data<bool>(), x.shape(), 0);
  if (is_floating_point(x.dtype())) return nested(host.to(DType::kFloat64).contiguous().data<double>(), x.shape(), 0);
  return nested(host.to(DType::kInt64).contiguous().data<std::int64_t>(), x.shape(), 0);
}

nb::object format(const nb::object& self, const nb::str& spec) {
  const Tensor& x = tensor_of(self);
  const nb::object value = x.ndim() == 0 && !x.is_meta() ? to_python(x.item_scalar()) : nb::object(nb::str(self));
  return nb::steal(PyObject_Format(value.ptr(), spec.ptr()));
}

void bind_values(nb::class_<TensorObject>& cls) {
  cls.def("item", item, nb::sig("def item(self) -> typing.Any"))
      .def("tolist", tolist, nb::sig("def tolist(self) -> typing.Any"))
      .def("__bool__", truth)
      .def("__float__", [](const Tensor& x) { return item(x).to_double(); })
      .def("__int__", whole)
      .def("__index__", as_index)
      .def("__len__",
           [](const Tensor& x) {
             if (x.ndim() == 0) throw nb::type_error("len() of a 0-d tensor");
             return x.shape()[0];
           })
      .def("__hash__", [](nb::handle self) { return reinterpret_cast<Py_hash_t>(self.ptr()) >> 4; })
      .def("__repr__", [](const Tensor& x) { return x.str(); })
      .def("__str__", [](const Tensor& x) { return x.str(); })
      .def("__format__", format);
}

// ---- Copies ----

// to(dtype), to(device), to(device, dtype), to(other): whatever stands in `args`.
Tensor converted(const Tensor& x, const nb::args& args, const nb::object& device, const nb::object& dtype,
                 bool /*non_blocking*/, bool copy, const nb::object& format) {
  TensorOptions options;
  if (!device.is_none()) options.device = nb::cast<Where>(device);
  if (!dtype.is_none()) options.dtype = to_dtype(dtype);
  for (const nb::handle arg : args) {
    if (arg.is_none() || PyBool_Check(arg.ptr())) continue;  // non_blocking, copy by place
    if (is_tensor(arg))
      options = tensor_of(arg).options();
    else if (const std::optional<DType> as = to_dtype(arg))
      options.dtype = as;
    else if (const std::optional<DeviceId> on = to_device(arg))
      options.device = Where(*on);
    else
      throw nb::type_error("to(): takes a device, a dtype or a tensor");
  }
  if (!options.dtype) options.dtype = x.dtype();
  if (!options.device) options.device = x.device();
  const Unlocked unlocked(x);
  Tensor out = x.to(options, copy);
  return format.is_none() ? out : out.contiguous(to_format(format));
}

void bind_copies(const Binder& to) {
  to.tensor
      .def("to", converted, "args"_a, "device"_a = nb::none(), "dtype"_a = nb::none(), "non_blocking"_a = false,
           "copy"_a = false, "memory_format"_a = nb::none())
      .def("cpu", [](const Tensor& x) { return x.to(TensorOptions(x.dtype(), DeviceId{})); })
      .def(
          "cuda",
          [](const Tensor& x, const nb::object& device, bool /*non_blocking*/) {
            const std::int32_t index = nb::isinstance<nb::int_>(device) ? nb::cast<std::int32_t>(device) : 0;
            return x.to(TensorOptions(Where({DeviceType::kCUDA, index})));
          },
          "device"_a = nb::none(), "non_blocking"_a = false)
      .def("type_as", [](const Tensor& x, const Tensor& y) { return x.to(y.options()); })
      .def(
          "contiguous", [](const Tensor& x, const nb::object& format) { return x.contiguous(to_format(format)); },
          "memory_format"_a = nb::none());
  to.both(
      "clone",
      [](const Tensor& x, const nb::object& format) {
        const Unlocked unlocked(x);
        return x.clone(format.is_none() ? MemoryFormat::kPreserve : to_format(format));
      },
      "input"_a, nb::kw_only(), "memory_format"_a = nb::none());
  for (const auto& [name, dtype] : {std::pair{"float", DType::kFloat32},
                                    {"double", DType::kFloat64},
                                    {"half", DType::kFloat16},
                                    {"bfloat16", DType::kBFloat16},
                                    {"long", DType::kInt64},
                                    {"int", DType::kInt32},
                                    {"short", DType::kInt16},
                                    {"char", DType::kInt8},
                                    {"byte", DType::kUInt8},
                                    {"bool", DType::kBool}})
    to.tensor.def(name, [dtype = dtype](const Tensor& x) { return x.to(dtype); });
}

void bind_fills(nb::class_<TensorObject>& cls) {
  cls.def("zero_", [](Tensor x) { return x.zero_(); })
      .def(
          "fill_", [](Tensor x, const Operand& value) { return x.fill_(value); }, "value"_a)
      .def(
          "copy_",
          [](Tensor x, const Operand& source, bool) {
            const Unlocked unlocked(x);
            return x.copy_(source);
          },
          "src"_a, "non_blocking"_a = false);
}

}  // namespace

MemoryFormat to_format(const nb::object& format) {
  if (format.is_none()) return MemoryFormat::kContiguous;
  const std::string name = text_of(format);
  if (name.find("channels_last") != std::string::npos) return MemoryFormat::kChannelsLast;
  return name.find("preserve") != std::string::npos ? MemoryFormat::kPreserve : MemoryFormat::kContiguous;
}

void bind_tensor(const Binder& to) {
  bind_sizes(to.tensor);
  bind_properties(to.tensor);
  bind_graph(to.tensor);
  bind_values(to.tensor);
  bind_copies(to);
  bind_fills(to.tensor);
  to.module.def("_subclass", [](const nb::type_object& cls, const Tensor& x, bool requires_grad) {
    Tensor made = x.detach();
    made.set_requires_grad(requires_grad);
    return new_object(cls, made);
  });
  to.module.def(
      "_print_options",
      [](int precision, std::int64_t threshold, std::int64_t edgeitems, int linewidth, std::optional<bool> sci) {
        print_options() = {precision, threshold, edgeitems, linewidth, sci};
      },
      "precision"_a, "threshold"_a, "edgeitems"_a, "linewidth"_a, "sci_mode"_a.none());
  to.module.def(
      "is_tensor", [](nb::handle object) { return is_tensor(object); }, "obj"_a.none());
}

}  // namespace infeed::python
