// New tensors: from data, filled, from and to arrays of other libraries.

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <array>

#include "../buffer.h"
#include "binder.h"
#include "data.h"
#include "infeed/train/autograd/creation.h"
#include "infeed/train/tensor/storage.h"

namespace infeed::python {
namespace {

struct Wanted {
  Dtype dtype;
  Device device;
  bool requires_grad = false;

  [[nodiscard]] TensorOptions options() const { return options_of(dtype, device); }
  /// Where the new tensor lies and whether it is tracked.
  [[nodiscard]] Tensor finish(Tensor x) const {
    const DeviceId on = device.value_or(default_device());
    if (x.device() != on) x = x.to(TensorOptions(x.dtype(), on));
    if (requires_grad) x.set_requires_grad(true);
    return x;
  }
};

Tensor tracked(Tensor x, bool requires_grad) {
  if (requires_grad) x.set_requires_grad(true);
  return x;
}

Tensor make_tensor(nb::handle data, Dtype dtype, Device device, bool requires_grad) {
  if (is_tensor(data)) {
    const Tensor& source = tensor_of(data);
    if (PyErr_WarnEx(PyExc_UserWarning,
                     "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                     "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
                     1) != 0)
      throw nb::python_error();
    const Tensor copy =
        source.detach().to(TensorOptions(dtype.value_or(source.dtype()), device.value_or(source.device())), true);
    return tracked(copy, requires_grad);
  }
  return Wanted{dtype, device, requires_grad}.finish(tensor_of_data(data, dtype));
}

// A tensor or array as it is, where it need not be converted.
Tensor as_tensor(nb::handle data, Dtype dtype, Device device) {
  const Tensor shared = is_tensor(data)  ? tensor_of(data)
                        : is_array(data) ? from_array(data)
                                         : tensor_of_data(data, dtype);
  const DeviceId on = device.value_or(is_tensor(data) ? shared.device() : default_device());
  return shared.to(TensorOptions(dtype.value_or(shared.dtype()), on));
}

Tensor from_numpy(nb::handle array) {
  if (PyObject_CheckBuffer(array.ptr()) == 0 || PyObject_HasAttrString(array.ptr(), "__array_interface__") == 0)
    throw nb::type_error(fmt::format("expected np.ndarray (got {})", Py_TYPE(array.ptr())->tp_name).c_str());
  return from_array(array);
}

Tensor from_bytes(nb::handle buffer, DType dtype, std::int64_t count, std::int64_t offset) {
  const Tensor bytes = from_array(nb::steal(PyMemoryView_FromObject(buffer.ptr())));
  const auto size = static_cast<std::int64_t>(itemsize(dtype));
  const std::int64_t fit = (static_cast<std::int64_t>(bytes.nbytes()) - offset) / size;
  if (offset < 0 || count > fit || fit <= 0)
    throw nb::value_error(fmt::format("frombuffer: {} bytes hold no {} elements of {} bytes from byte {} on",
                                      bytes.nbytes(), count, size, offset)
                              .c_str());
  const ArrayView view(bytes.data_ptr() + offset, dtype, {count < 0 ? fit : count});
  return Tensor::from_array(view, std::make_shared<Tensor>(bytes));
}

// ---- Factories ----

template <class Make>
void bind_filled(const Binder& to, const char* name, Make make) {
  to.module.def(
      name,
      [make](const nb::args& size, Dtype dtype, Device device, bool requires_grad) {
        return tracked(make(sizes_of(size), Wanted{dtype, device, false}.options()), requires_grad);
      },
      "size"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false);
}

template <class Make>
void bind_like(const Binder& to, const char* name, Make make) {
  to.module.def(
      name,
      [make](const Tensor& x, Dtype dtype, Device device, bool requires_grad) {
        return tracked(make(x, Wanted{dtype, device, false}.options()), requires_grad);
      },
      "input"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false);
}

template <class Make>
void bind_new(const Binder& to, const char* name, Make make) {
  to.tensor.def(
      name,
      [make](const Tensor& x, const nb::args& size, Dtype dtype, Device device, bool requires_grad) {
        const TensorOptions options(dtype.value_or(x.dtype()), device.value_or(x.device()));
        return tracked(make(sizes_of(size), options), requires_grad);
      },
      "size"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false);
}

Tensor full(const Sizes& size, const Scalar& value, Dtype dtype, Device device, bool requires_grad) {
  if (!dtype) dtype = value.is_float() ? default_dtype() : value.dtype();
  return tracked(Tensor::full(size, value, Wanted{dtype, device, false}.options()), requires_grad);
}

void bind_factories(const Binder& to) {
  bind_filled(to, "zeros", [](const Shape& shape, const TensorOptions& o) { return Tensor::zeros(shape, o); });
  bind_filled(to, "ones", [](const Shape& shape, const TensorOptions& o) { return Tensor::ones(shape, o); });
  bind_filled(to, "empty", [](const Shape& shape, const TensorOptions& o) { return Tensor::empty(shape, o); });
  bind_like(to, "zeros_like", [](const Tensor& x, const TensorOptions& o) { return zeros_like(x, o); });
  bind_like(to, "ones_like", [](const Tensor& x, const TensorOptions& o) { return ones_like(x, o); });
  bind_like(to, "empty_like", [](const Tensor& x, const TensorOptions& o) { return empty_like(x, o); });
  bind_new(to, "new_zeros", [](const Shape& shape, const TensorOptions& o) { return Tensor::zeros(shape, o); });
  bind_new(to, "new_ones", [](const Shape& shape, const TensorOptions& o) { return Tensor::ones(shape, o); });
  bind_new(to, "new_empty", [](const Shape& shape, const TensorOptions& o) { return Tensor::empty(shape, o); });
  to.module.def("full", full, "size"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
                "requires_grad"_a = false);
  to.module.def(
      "full_like",
      [](const Tensor& x, const Scalar& value, Dtype dtype, Device device) {
        return full_like(x, value, Wanted{dtype, device, false}.options());
      },
      "input"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none());
  to.tensor.def(
      "new_full",
      [](const Tensor& x, const Sizes& size, const Scalar& value, Dtype dtype, Device device) {
        return Tensor::full(size, value, TensorOptions(dtype.value_or(x.dtype()), device.value_or(x.device())));
      },
      "size"_a, "fill_value"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none());
  to.tensor.def(
      "new_tensor",
      [](const Tensor& x, nb::handle data, Dtype dtype, Device device, bool requires_grad) {
        return make_tensor(data, dtype.value_or(x.dtype()), device.value_or(x.device()), requires_grad);
      },
      "data"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false);
}

// arange(end), arange(start, end), arange(start, end, step).
Tensor range(const Scalar& start, const std::optional<Scalar>& end, const Scalar& step, Dtype dtype, Device device,
             bool requires_grad) {
  const TensorOptions options = Wanted{dtype, device, false}.options();
  return tracked(end ? arange(start, *end, step, options) : arange(0, start, step, options), requires_grad);
}

void bind_ranges(nb::module_& module) {
  module.def("arange", range, "start"_a, "end"_a = nb::none(), "step"_a = Scalar(1), nb::kw_only(),
             "dtype"_a = nb::none(), "device"_a = nb::none(), "requires_grad"_a = false);
  module.def(
      "linspace",
      [](double start, double end, std::int64_t steps, Dtype dtype, Device device) {
        return linspace(start, end, steps, Wanted{dtype, device, false}.options());
      },
      "start"_a, "end"_a, "steps"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none());
  module.def(
      "eye",
      [](std::int64_t n, std::optional<std::int64_t> m, Dtype dtype, Device device) {
        return eye(n, m.value_or(-1), Wanted{dtype, device, false}.options());
      },
      "n"_a, "m"_a = nb::none(), nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none());
}

// ---- To other libraries ----

constexpr std::array<const char*, kNumDTypes> kFormats = {"?", "B", "b", "h",     "H", "i", "I",
                                                          "l", "L", "e", nullptr, "f", "d"};

std::string unfit_for_numpy(const Tensor& x) {
  if (x.device().type != DeviceType::kCPU)
    return fmt::format(
        "can't convert {} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory "
        "first.",
        device_name(x.device()));
  if (x.dtype() == DType::kBFloat16) return "Got unsupported ScalarType BFloat16";
  return {};
}

int get_buffer(PyObject* object, Py_buffer* buffer, int /*flags*/) noexcept {
  const Tensor& x = tensor_of(object);
  if (const std::string unfit = unfit_for_numpy(x); !unfit.empty() || x.requires_grad()) {
    PyErr_SetString(PyExc_BufferError, unfit.empty() ? "the tensor requires grad; detach() it" : unfit.c_str());
    return -1;
  }
  return fill_buffer(object, buffer, x.array(), kFormats[static_cast<std::size_t>(x.dtype())]);
}

nb::object numpy(const nb::object& self, bool force) {
  Tensor x = tensor_of(self);
  if (force) x = x.detach().to(TensorOptions(DeviceId{}));
  if (const std::string unfit = unfit_for_numpy(x); !unfit.empty()) throw nb::type_error(unfit.c_str());
  if (x.requires_grad())
    throw RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
  const nb::object memory = nb::steal(PyMemoryView_FromObject(to_python(x).ptr()));
  if (!memory.is_valid()) throw nb::python_error();
  return nb::module_::import_("numpy").attr("asarray")(memory);
}

nb::object array(const nb::object& self, const nb::object& dtype, const nb::object& copy) {
  const nb::object made = numpy(self, false);
  if (dtype.is_none()) return copy.is_none() || !nb::cast<bool>(copy) ? made : made.attr("copy")();
  return made.attr("astype")(dtype, "copy"_a = !copy.is_none() && nb::cast<bool>(copy));
}

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const Code code = dtype == DType::kBool                                      ? Code::Bool
                    : dtype == DType::kBFloat16                                ? Code::Bfloat
                    : is_floating_point(dtype)                                 ? Code::Float
                    : std::isupper(*kFormats[static_cast<std::size_t>(dtype)]) ? Code::UInt
                                                                               : Code::Int;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * itemsize(dtype)), 1};
}

// A capsule; what `kwargs` may ask for (stream, max_version, copy) makes no difference to memory of the CPU.
nb::object dlpack(const Tensor& x, const nb::kwargs& /*kwargs*/) {
  if (x.requires_grad()) throw nb::buffer_error("Can't export tensors that require gradient, use tensor.detach()");
  if (x.device().type != DeviceType::kCPU && x.device().type != DeviceType::kCUDA)
    throw nb::buffer_error("only tensors in CPU memory and on CUDA devices are exported");
  std::vector<std::size_t> shape(x.shape().begin(), x.shape().end());
  const std::vector<std::int64_t> strides(x.strides().begin(), x.strides().end());
  auto* held = new Tensor(x);
  const nb::capsule owner(held, [](void* tensor) noexcept { delete static_cast<Tensor*>(tensor); });
  const nb::ndarray<> array(x.device_ptr(), shape.size(), shape.data(), owner, strides.data(), dlpack_dtype(x.dtype()),
                            static_cast<int>(x.device().type), x.device().index);
  return nb::cast(array, nb::rv_policy::reference);
}

}  // namespace

PyType_Slot* buffer_slots() {
  static PyType_Slot slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                {0, nullptr}};
  return slots;
}

void bind_create(const Binder& to) {
  to.tensor
      .def("__init__",
           [](nb::pointer_and_handle<TensorObject> self, const nb::args& args) {
             const bool of_data = args.size() == 1 && (PyList_Check(nb::handle(args[0]).ptr()) || is_array(args[0]) ||
                                                       PyTuple_Check(nb::handle(args[0]).ptr()));
             Tensor made;
             if (args.size() == 1 && is_tensor(args[0]))
               made = tensor_of(args[0]).detach();
             else
               made = of_data ? Wanted{}.finish(tensor_of_data(args[0], default_dtype()))
                              : Tensor::empty(args.empty() ? Shape{0} : sizes_of(args));
             new (self.p) TensorObject(std::move(made), self.h.ptr());
           })
      .def("numpy", numpy, nb::kw_only(), "force"_a = false,
           nb::sig("def numpy(self, *, force: bool = False) -> typing.Any"))
      .def("__array__", array, "dtype"_a = nb::none(), "copy"_a = nb::none())
      .def("__dlpack__", dlpack)
      .def("__dlpack_device__",
           [](const Tensor& x) { return nb::make_tuple(static_cast<int>(x.device().type), x.device().index); });
  to.module.def("tensor", make_tensor, "data"_a, nb::kw_only(), "dtype"_a = nb::none(), "device"_a = nb::none(),
                "requires_grad"_a = false);
  for (const char* name : {"as_tensor", "asarray"})
    to.module.def(name, as_tensor, "data"_a, "dtype"_a = nb::none(), "device"_a = nb::none());
  to.module.def("from_numpy", from_numpy);
  to.module.def("from_dlpack",
                [](nb::handle object) { return is_tensor(object) ? tensor_of(object).detach() : from_array(object); });
  to.module.def("_as_bytes", [](const Tensor& x) {
    const ArrayView view(x.data_ptr(), DType::kUInt8, {static_cast<std::int64_t>(x.nbytes())});
    return Tensor::from_array(view, std::make_shared<Tensor>(x));
  });
  to.module.def("frombuffer", from_bytes, "buffer"_a, nb::kw_only(), "dtype"_a, "count"_a = -1, "offset"_a = 0);
  bind_factories(to);
  bind_ranges(to.module);
}

}  // namespace infeed::python
