#pragma once
/// Values that cross between Python and the companion: tensors keep their identity, numbers become operands.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "infeed/train/tensor/tensor.h"

namespace infeed::python {

namespace nb = nanobind;
using namespace nb::literals;

/// The Python object `Tensor`: a handle, and the tensor's place for this object (Tensor::binding_slot) points back
/// while both live. So `x.grad is x.grad`, and what autograd returns is the Parameter that was put in.
struct TensorObject {
  Tensor tensor;
  explicit TensorObject(Tensor of, PyObject* self);
  TensorObject(const TensorObject&) = delete;
  TensorObject& operator=(const TensorObject&) = delete;
  ~TensorObject();
};

/// A tensor, or a number as a tensor that promotes weakly. Other objects fit no overload, so that Python asks the
/// other operand.
struct Operand {
  Tensor tensor;
  operator const Tensor&() const noexcept { return tensor; }  // NOLINT: implicit on purpose
};

/// Sizes as Python gives them: `(2, 3)`, `[2, 3]`, `2, 3` or one number.
struct Sizes : Shape {
  using Shape::Shape;
};

/// A device as an argument. Reading it throws what Python shall see for one that does not exist here.
struct Where {
  DeviceId id;
  Where() = default;
  Where(DeviceId of) : id(of) {}  // NOLINT: implicit on purpose
  operator DeviceId() const;      // NOLINT: implicit on purpose
};
using Dtype = std::optional<DType>;
using Device = std::optional<Where>;

[[nodiscard]] inline TensorOptions options_of(Dtype dtype, Device device) {
  TensorOptions options;
  options.dtype = dtype;
  if (device) options.device = static_cast<DeviceId>(*device);
  return options;
}

extern PyTypeObject* tensor_type;  ///< set by bind_tensor

[[nodiscard]] inline bool is_tensor(nb::handle object) noexcept {
  return PyObject_TypeCheck(object.ptr(), tensor_type) != 0;
}
/// Only after is_tensor().
[[nodiscard]] inline const Tensor& tensor_of(nb::handle object) noexcept {
  return nb::inst_ptr<TensorObject>(object)->tensor;
}

/// The object of a tensor: the one that exists, or a new one of `type`; None for an undefined tensor.
[[nodiscard]] nb::object to_python(const Tensor& tensor);
[[nodiscard]] nb::object new_object(nb::handle type, Tensor tensor);

[[nodiscard]] bool to_operand(nb::handle object, Tensor& out) noexcept;
[[nodiscard]] std::optional<Scalar> to_scalar(nb::handle object) noexcept;
[[nodiscard]] bool to_sizes(nb::handle object, Dims& out) noexcept;
/// Of `f(2, 3)` or `f((2, 3))`.
[[nodiscard]] Shape sizes_of(const nb::args& args, std::size_t first = 0);

[[nodiscard]] nb::object to_python(DType dtype);
[[nodiscard]] nb::object to_python(DeviceId device);
[[nodiscard]] nb::object size_tuple(const Dims& dims);   ///< a Size
[[nodiscard]] nb::object plain_tuple(const Dims& dims);  ///< a tuple
[[nodiscard]] nb::object to_python(const Scalar& scalar);
[[nodiscard]] std::optional<DType> to_dtype(nb::handle object) noexcept;
[[nodiscard]] inline std::string text_of(nb::handle object) {
  const nb::object text = nb::steal(PyObject_Str(object.ptr()));
  if (!text.is_valid()) throw nb::python_error();
  return PyUnicode_AsUTF8(text.ptr());
}
/// "channels_last" and the like; None is C order.
[[nodiscard]] MemoryFormat to_format(const nb::object& format);
[[nodiscard]] std::optional<DeviceId> to_device(nb::handle object) noexcept;

/// A Python value for C++ owners that may drop it without the GIL.
template <class Value>
[[nodiscard]] std::shared_ptr<void> keep_alive(Value value) {
  return {new Value(std::move(value)), [](void* held) {
            if (!Py_IsInitialized()) return;  // a static owner: the interpreter is gone, and the value with it
            const nb::gil_scoped_acquire locked;
            delete static_cast<Value*>(held);
          }};
}

}  // namespace infeed::python

namespace nanobind::detail {

template <>
struct type_caster<infeed::Tensor> {
  NB_TYPE_CASTER(infeed::Tensor, const_name("infeed.train._train.Tensor"))
  bool from_python(handle src, std::uint8_t /*flags*/, cleanup_list* /*list*/) noexcept {
    if (src.is_none()) return true;  // undefined; only where the argument may be None
    if (!infeed::python::is_tensor(src)) return false;
    value = infeed::python::tensor_of(src);
    return true;
  }
  static handle from_cpp(const infeed::Tensor& tensor, rv_policy, cleanup_list*) noexcept {
    try {
      return infeed::python::to_python(tensor).release();
    } catch (python_error& error) {
      error.restore();
      return {};
    }
  }
};

template <>
struct type_caster<infeed::python::Operand> {
  NB_TYPE_CASTER(infeed::python::Operand, const_name("infeed.train._train.Tensor | float"))
  bool from_python(handle src, std::uint8_t /*flags*/, cleanup_list* /*list*/) noexcept {
    return infeed::python::to_operand(src, value.tensor);
  }
};

template <>
struct type_caster<infeed::Scalar> {
  using Value = infeed::Scalar;
  static constexpr auto Name = const_name("float");
  template <typename T>
  using Cast = infeed::Scalar;
  template <typename T>
  static constexpr bool can_cast() {
    return true;
  }
  bool from_python(handle src, std::uint8_t /*flags*/, cleanup_list* /*list*/) noexcept {
    const std::optional<infeed::Scalar> scalar = infeed::python::to_scalar(src);
    if (scalar) value = *scalar;
    return scalar.has_value();
  }
  static handle from_cpp(const infeed::Scalar& scalar, rv_policy, cleanup_list*) noexcept {
    return infeed::python::to_python(scalar).release();
  }
  explicit operator infeed::Scalar() const { return value; }
  infeed::Scalar value = 0;
};

template <>
struct type_caster<infeed::python::Sizes> {
  NB_TYPE_CASTER(infeed::python::Sizes, const_name("int | collections.abc.Sequence[int]"))
  bool from_python(handle src, std::uint8_t /*flags*/, cleanup_list* /*list*/) noexcept {
    return infeed::python::to_sizes(src, value);
  }
};

template <>
struct type_caster<infeed::DType> {
  NB_TYPE_CASTER(infeed::DType, const_name("infeed.train._train.dtype"))
  bool from_python(handle src, std::uint8_t /*flags*/, cleanup_list* /*list*/) noexcept {
    const std::optional<infeed::DType> dtype = infeed::python::to_dtype(src);
    if (dtype) value = *dtype;
    return dtype.has_value();
  }
  static handle from_cpp(infeed::DType dtype, rv_policy, cleanup_list*) noexcept {
    return infeed::python::to_python(dtype).release();
  }
};

template <>
struct type_caster<infeed::python::Where> {
  NB_TYPE_CASTER(infeed::python::Where, const_name("infeed.train._train.device | str"))
  bool from_python(handle src, std::uint8_t /*flags*/, cleanup_list* /*list*/) noexcept {
    const std::optional<infeed::DeviceId> device = infeed::python::to_device(src);
    if (device) value = *device;
    return device.has_value();
  }
};

template <>
struct type_caster<infeed::DeviceId> {
  NB_TYPE_CASTER(infeed::DeviceId, const_name("infeed.train._train.device"))
  bool from_python(handle, std::uint8_t, cleanup_list*) noexcept = delete;  // take a Where
  static handle from_cpp(infeed::DeviceId device, rv_policy, cleanup_list*) noexcept {
    return infeed::python::to_python(device).release();
  }
};

}  // namespace nanobind::detail
