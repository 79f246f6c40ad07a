#include "data.h"

#include <fmt/format.h>
#include <nanobind/ndarray.h>

#include <cstring>

#include "infeed/train/tensor/storage.h"

namespace infeed::python {
namespace {

// ---- Nested sequences ----

bool is_sequence(nb::handle object) { return PyList_Check(object.ptr()) || PyTuple_Check(object.ptr()); }

// Collects the numbers of a nested list in C order, and what dtype they ask for.
class Flattener {
 public:
  explicit Flattener(nb::handle data) {
    for (nb::object level = nb::borrow(data); is_sequence(level);) {
      const Py_ssize_t count = PySequence_Fast_GET_SIZE(level.ptr());
      shape_.push_back(count);
      if (count == 0) break;
      level = nb::borrow(PySequence_Fast_GET_ITEM(level.ptr(), 0));
      if (!is_sequence(level) && is_array(level) && !is_tensor(level)) level = nb::object(level.attr("tolist")());
      if (is_tensor(level) && tensor_of(level).ndim() > 0) level = nb::object(level.attr("tolist")());
    }
    visit(data, 0);
  }

  [[nodiscard]] Tensor tensor(std::optional<DType> dtype) const {
    const DType inferred = any_float_  ? default_dtype()
                           : any_int_  ? DType::kInt64
                           : any_bool_ ? DType::kBool
                                       : default_dtype();
    const DType wanted = dtype.value_or(named_.value_or(inferred));
    const Tensor all = any_float_ ? Tensor::from_values(std::span<const double>(floats_), shape_)
                                  : Tensor::from_values(std::span<const std::int64_t>(ints_), shape_);
    return all.to(wanted);
  }

 private:
  void visit(nb::handle object, int dim) {
    if (!is_sequence(object) && dim < shape_.ndim() && (is_tensor(object) || is_array(object)))
      return visit(nb::object(object.attr("tolist")()), dim);
    if (!is_sequence(object)) return add(object, dim);
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(object.ptr());
    if (dim >= shape_.ndim() || count != shape_[dim])
      throw nb::value_error(fmt::format("expected sequence of length {} at dim {} (got {})",
                                        dim < shape_.ndim() ? shape_[dim] : 0, dim, count)
                                .c_str());
    for (Py_ssize_t i = 0; i < count; ++i) visit(PySequence_Fast_GET_ITEM(object.ptr(), i), dim + 1);
  }

  void add(nb::handle object, int dim) {
    const std::optional<Scalar> value = number(object);
    if (!value) {
      const std::string name = Py_TYPE(object.ptr())->tp_name;
      if (PyUnicode_Check(object.ptr()) && dim == 0)
        throw nb::type_error(("new(): invalid data type '" + name + "'").c_str());
      if (PyUnicode_Check(object.ptr())) throw nb::value_error(("too many dimensions '" + name + "'").c_str());
      throw RuntimeError("Could not infer dtype of " + name);
    }
    if (dim < shape_.ndim())
      throw nb::type_error(
          fmt::format("not a sequence: expected one of length {} at dim {}", shape_[dim], dim).c_str());
    if (value->is_float() && !any_float_) {
      any_float_ = true;
      floats_.assign(ints_.begin(), ints_.end());
    }
    any_int_ |= !value->is_float() && !value->is_bool();
    any_bool_ |= value->is_bool();
    if (any_float_)
      floats_.push_back(value->to_double());
    else
      ints_.push_back(value->to_int());
  }

  // NumPy's scalars and tensors name their dtype; Python's numbers do not.
  std::optional<Scalar> number(nb::handle object) {
    if (is_tensor(object)) {
      name_dtype(tensor_of(object).dtype());
      return tensor_of(object).item_scalar();
    }
    const std::optional<Scalar> value = to_scalar(object);
    if (value && !PyFloat_CheckExact(object.ptr()) && !PyLong_Check(object.ptr()) &&
        PyObject_HasAttrString(object.ptr(), "dtype") != 0) {
      const auto name = text_of(nb::object(object.attr("dtype")));
      name_dtype(dtype_from_string(name));
      if (*named_ == DType::kBool) return Scalar(value->to_double() != 0.0);
    }
    return value;
  }
  void name_dtype(DType dtype) { named_ = named_ ? promote_types(*named_, dtype) : dtype; }

  Shape shape_;
  std::vector<double> floats_;
  std::vector<std::int64_t> ints_;
  bool any_float_ = false, any_int_ = false, any_bool_ = false;
  std::optional<DType> named_;
};

// ---- Arrays ----

// Of the struct module: the native and the little-endian forms.
std::optional<DType> dtype_of_format(const char* format, Py_ssize_t size) {
  if (format == nullptr) return DType::kUInt8;
  if (*format == '<' || *format == '=' || *format == '@' || *format == '|') ++format;
  if (*format == '\0' || format[1] != '\0') return std::nullopt;
  const bool known_int = std::strchr("bhilqBHILQ", *format) != nullptr;
  if (*format == '?') return DType::kBool;
  if (*format == 'e') return DType::kFloat16;
  if (*format == 'f') return DType::kFloat32;
  if (*format == 'd') return DType::kFloat64;
  if (!known_int) return std::nullopt;
  const bool has_sign = std::islower(static_cast<unsigned char>(*format)) != 0;
  switch (size) {
    case 1: return has_sign ? DType::kInt8 : DType::kUInt8;
    case 2: return has_sign ? DType::kInt16 : DType::kUInt16;
    case 4: return has_sign ? DType::kInt32 : DType::kUInt32;
    case 8: return has_sign ? DType::kInt64 : DType::kUInt64;
    default: return std::nullopt;
  }
}

[[noreturn]] void refuse(nb::handle array) {
  std::string name = "?";
  if (PyObject_HasAttrString(array.ptr(), "dtype") != 0) name = text_of(nb::object(array.attr("dtype")));
  throw nb::type_error(
      fmt::format("can't convert np.ndarray of type numpy.{}. The only supported types are: float64, "
                  "float32, float16, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool.",
                  name)
          .c_str());
}

void warn_read_only() {
  if (PyErr_WarnEx(
          PyExc_UserWarning,
          "The given NumPy array is not writable: writing to the tensor would change it all the same. Copy the "
          "array if you mean to write.",
          1) != 0)
    throw nb::python_error();
}

Tensor from_buffer(nb::handle array) {
  HeldBuffer held;
  const bool writable = PyObject_GetBuffer(array.ptr(), &held.buffer, PyBUF_RECORDS) == 0;
  if (!writable) {
    PyErr_Clear();
    if (PyObject_GetBuffer(array.ptr(), &held.buffer, PyBUF_RECORDS_RO) != 0) {
      PyErr_Clear();
      refuse(array);
    }
  }
  const Py_buffer& buffer = held.buffer;
  const std::optional<DType> dtype = dtype_of_format(buffer.format, buffer.itemsize);
  if (!dtype) refuse(array);
  ArrayView view;
  view.data = static_cast<std::byte*>(buffer.buf);
  view.dtype = *dtype;
  for (int i = 0; i < buffer.ndim; ++i) {
    if (buffer.strides[i] < 0)
      throw nb::value_error(
          "At least one stride in the given numpy array is negative, and tensors with negative strides "
          "are not currently supported. (You can probably work around this by making a copy of your "
          "array with array.copy().)");
    if (buffer.strides[i] % buffer.itemsize != 0)
      throw nb::value_error("given numpy array strides not a multiple of the element byte size. Copy array before.");
    view.shape.push_back(buffer.shape[i]);
    view.strides.push_back(buffer.strides[i] / buffer.itemsize);
  }
  if (!writable) warn_read_only();
  return Tensor::from_array(view, keep_alive(std::move(held)));
}

Tensor from_dlpack(nb::handle object) {
  nb::ndarray<> array;
  if (!nb::try_cast(object, array)) throw nb::type_error("from_dlpack(): the object offers no DLPack tensor");
  const bool on_cuda = array.device_type() == nb::device::cuda::value;
  if (!on_cuda && array.device_type() != nb::device::cpu::value)
    throw nb::type_error("from_dlpack(): the tensor is neither in CPU memory nor on a CUDA device");
  const nb::dlpack::dtype given = array.dtype();
  std::optional<DType> dtype;
  const auto size = static_cast<Py_ssize_t>(given.bits / 8);
  switch (static_cast<nb::dlpack::dtype_code>(given.code)) {
    case nb::dlpack::dtype_code::Bool: dtype = DType::kBool; break;
    case nb::dlpack::dtype_code::Bfloat: dtype = DType::kBFloat16; break;
    case nb::dlpack::dtype_code::Float:
      dtype = size == 2 ? DType::kFloat16 : size == 4 ? DType::kFloat32 : DType::kFloat64;
      break;
    case nb::dlpack::dtype_code::Int: dtype = dtype_of_format("q", size); break;
    case nb::dlpack::dtype_code::UInt: dtype = dtype_of_format("Q", size); break;
    default: throw nb::type_error("from_dlpack(): complex and 8-bit floating-point numbers are not known here");
  }
  ArrayView view;
  view.data = static_cast<std::byte*>(array.data());
  view.dtype = *dtype;
  if (on_cuda) view.device = Where({DeviceType::kCUDA, array.device_id()});
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    view.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    view.strides.push_back(array.stride(i));
  }
  return Tensor::from_array(view, keep_alive(std::move(array)));
}

}  // namespace

bool is_array(nb::handle object) noexcept {
  PyObject* o = object.ptr();
  if (is_tensor(object) || PyBytes_Check(o) || PyUnicode_Check(o)) return false;
  return PyObject_CheckBuffer(o) != 0 || PyObject_HasAttrString(o, "__dlpack__") != 0;
}

Tensor from_array(nb::handle array) {
  return PyObject_CheckBuffer(array.ptr()) != 0 ? from_buffer(array) : from_dlpack(array);
}

Tensor tensor_of_data(nb::handle data, std::optional<DType> dtype) {
  if (is_array(data)) {
    const Tensor shared = from_array(data);
    return dtype ? shared.to(*dtype, true) : shared.clone();
  }
  return Flattener(data).tensor(dtype);
}

}  // namespace infeed::python
