#include "convert.h"

#include "types.h"

namespace infeed::python {

PyTypeObject* tensor_type = nullptr;

TensorObject::TensorObject(Tensor of, PyObject* self) : tensor(std::move(of)) { tensor.binding_slot() = self; }

// Another object may have taken the place meanwhile: only while this one was being destroyed.
TensorObject::~TensorObject() {
  void*& slot = tensor.binding_slot();
  if (slot != nullptr && nb::inst_ptr<TensorObject>(static_cast<PyObject*>(slot)) == this) slot = nullptr;
}

nb::object new_object(nb::handle type, Tensor tensor) {
  nb::object object = nb::inst_alloc(type);
  new (nb::inst_ptr<TensorObject>(object)) TensorObject(std::move(tensor), object.ptr());
  nb::inst_mark_ready(object);
  return object;
}

nb::object to_python(const Tensor& tensor) {
  if (!tensor.defined()) return nb::none();
  auto* known = static_cast<PyObject*>(tensor.binding_slot());
  if (known != nullptr && Py_REFCNT(known) > 0) return nb::borrow(known);
  return new_object(reinterpret_cast<PyObject*>(tensor_type), tensor);
}

std::optional<Scalar> to_scalar(nb::handle object) noexcept {
  PyObject* o = object.ptr();
  if (PyFloat_Check(o)) return Scalar(PyFloat_AS_DOUBLE(o));
  if (PyBool_Check(o)) return Scalar(o == Py_True);
  if (PyLong_Check(o)) {
    const long long value = PyLong_AsLongLong(o);
    if (value != -1 || PyErr_Occurred() == nullptr) return Scalar(static_cast<std::int64_t>(value));
    PyErr_Clear();
    return std::nullopt;
  }
  if (is_tensor(object)) {
    try {
      const Tensor& tensor = tensor_of(object);
      if (tensor.numel() == 1 && !tensor.requires_grad()) return tensor.item_scalar();
    } catch (const std::exception&) {  // meta
    }
    return std::nullopt;
  }
  if (PyIndex_Check(o)) {  // numpy.int64
    const nb::object number = nb::steal(PyNumber_Index(o));
    if (number.is_valid()) return to_scalar(number);
    PyErr_Clear();
    return std::nullopt;
  }
  // numpy.float32, numpy.bool: numbers without a length
  const PyNumberMethods* number = Py_TYPE(o)->tp_as_number;
  if (number == nullptr || number->nb_float == nullptr || PyObject_HasAttrString(o, "dtype") == 0 ||
      PyObject_HasAttrString(o, "__setitem__") != 0)
    return std::nullopt;
  const nb::object value = nb::steal(PyNumber_Float(o));
  if (value.is_valid()) return Scalar(PyFloat_AS_DOUBLE(value.ptr()));
  PyErr_Clear();
  return std::nullopt;
}

bool to_operand(nb::handle object, Tensor& out) noexcept {
  if (is_tensor(object)) {
    out = tensor_of(object);
    return true;
  }
  const std::optional<Scalar> scalar = to_scalar(object);
  if (scalar) out = Tensor::wrapped(*scalar);
  return scalar.has_value();
}

bool to_sizes(nb::handle object, Dims& out) noexcept try {
  if (PyLong_Check(object.ptr()) || PyIndex_Check(object.ptr())) {
    const Py_ssize_t value = PyNumber_AsSsize_t(object.ptr(), nullptr);
    if (value == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return false;
    }
    out.push_back(value);
    return true;
  }
  if (!PyTuple_Check(object.ptr()) && !PyList_Check(object.ptr())) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(object.ptr());
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object.ptr(), i);
    const bool fits = PyIndex_Check(item) != 0;
    const Py_ssize_t value = fits ? PyNumber_AsSsize_t(item, nullptr) : -1;
    if (!fits || (value == -1 && PyErr_Occurred() != nullptr)) {
      PyErr_Clear();
      return false;
    }
    out.push_back(value);
  }
  return true;
} catch (const std::exception&) {
  return false;
}

Shape sizes_of(const nb::args& args, std::size_t first) {
  Shape shape;
  if (args.size() == first + 1 && to_sizes(args[first], shape)) return shape;
  shape = {};
  for (std::size_t i = first; i < args.size(); ++i) {
    Dims one;
    if (!PyIndex_Check(nb::handle(args[i]).ptr()) || !to_sizes(args[i], one))
      throw nb::type_error("sizes and dimensions are integers, or one tuple of integers");
    shape.push_back(one[0]);
  }
  return shape;
}

nb::object plain_tuple(const Dims& dims) {
  nb::object tuple = nb::steal(PyTuple_New(dims.ndim()));
  for (int i = 0; i < dims.ndim(); ++i) PyTuple_SET_ITEM(tuple.ptr(), i, PyLong_FromLongLong(dims[i]));
  return tuple;
}

nb::object to_python(const Scalar& scalar) {
  if (scalar.is_bool()) return nb::bool_(scalar.to_int() != 0);
  if (scalar.is_float()) return nb::float_(scalar.to_double());
  return nb::int_(scalar.to_int());
}

}  // namespace infeed::python
