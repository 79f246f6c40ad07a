#include "types.h"

#include <fmt/format.h>

#include <array>
#include <functional>

#include "infeed/base/error.h"
#include "infeed/train/tensor/device.h"

namespace infeed::python {
namespace {

std::array<PyObject*, kNumDTypes> dtype_objects{};  // owned for as long as the process
PyObject* size_type = nullptr;

std::string dtype_repr(const DTypeObject& self) { return fmt::format("train.{}", to_string(self.dtype)); }

bool is_signed(DType dtype) {
  return dtype != DType::kBool && dtype != DType::kUInt8 && dtype != DType::kUInt16 && dtype != DType::kUInt32 &&
         dtype != DType::kUInt64;
}

std::string type_name(DeviceType type) {
  const std::string name = device_name({type, 0});
  return name.substr(0, name.find(':'));
}

std::string device_str(const DeviceObject& self) {
  return self.indexed ? fmt::format("{}:{}", type_name(self.id.type), self.id.index) : type_name(self.id.type);
}

std::string device_repr(const DeviceObject& self) {
  const std::string type = type_name(self.id.type);
  return self.indexed ? fmt::format("device(type='{}', index={})", type, self.id.index)
                      : fmt::format("device(type='{}')", type);
}

DeviceObject device_from(const nb::object& which, std::optional<std::int32_t> index) {
  if (nb::isinstance<DeviceObject>(which)) return nb::cast<DeviceObject>(which);
  if (nb::isinstance<nb::int_>(which)) return {{DeviceType::kCUDA, nb::cast<std::int32_t>(which)}, true};
  if (!nb::isinstance<nb::str>(which)) throw nb::type_error("device(): a name such as 'cpu', or a device");
  const auto name = nb::cast<std::string>(which);
  DeviceObject made{device_from_string(name), name.find(':') != std::string::npos};
  if (index) {
    if (made.indexed)
      throw nb::value_error(fmt::format("type (string) must not include an index because index was passed "
                                        "explicitly: {}",
                                        name)
                                .c_str());
    made.id.index = *index;
    made.indexed = true;
  }
  return made;
}

void bind_dtype(nb::module_& module) {
  nb::class_<DTypeObject>(module, "dtype", "The type of a tensor's elements. One object each: compare with `is`.")
      .def_prop_ro("itemsize", [](const DTypeObject& self) { return itemsize(self.dtype); })
      .def_prop_ro("is_floating_point", [](const DTypeObject& self) { return is_floating_point(self.dtype); })
      .def_prop_ro("is_complex", [](const DTypeObject&) { return false; })
      .def_prop_ro("is_signed", [](const DTypeObject& self) { return is_signed(self.dtype); })
      .def("__repr__", dtype_repr)
      .def("__reduce__", [](const DTypeObject& self) {
        return nb::make_tuple(nb::module_::import_("infeed.train._types").attr("dtype_named"),
                              nb::make_tuple(std::string(to_string(self.dtype))));
      });
  module.def("_dtype_named", [](const std::string& name) { return to_python(dtype_from_string(name)); });
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    nb::object object = nb::cast(DTypeObject{dtype});
    dtype_objects[static_cast<std::size_t>(i)] = object.inc_ref().ptr();
    // Not `bool`: the stub's annotations mean Python's.
    const std::string name = dtype == DType::kBool ? "bool_" : std::string(to_string(dtype));
    module.attr(name.c_str()) = object;
  }
}

void bind_device(nb::module_& module) {
  nb::class_<DeviceObject>(module, "device", "Where memory lies: 'cpu', 'meta', 'cuda:0', 'simulated:0'.")
      .def(
          "__init__",
          [](DeviceObject* self, const nb::object& type, std::optional<std::int32_t> index) {
            new (self) DeviceObject(device_from(type, index));
          },
          "type"_a, "index"_a = nb::none())
      .def_prop_ro("type", [](const DeviceObject& self) { return type_name(self.id.type); })
      .def_prop_ro("index",
                   [](const DeviceObject& self) -> std::optional<std::int32_t> {
                     if (!self.indexed) return std::nullopt;
                     return self.id.index;
                   })
      .def("__str__", device_str)
      .def("__repr__", device_repr)
      .def("__eq__",
           [](const DeviceObject& self, const nb::object& other) {
             return nb::isinstance<DeviceObject>(other) && nb::cast<DeviceObject>(other) == self;
           })
      .def("__hash__", [](const DeviceObject& self) { return std::hash<std::string>()(device_str(self)); })
      .def("__reduce__", [](const DeviceObject& self) {
        return nb::make_tuple(nb::type<DeviceObject>(), nb::make_tuple(device_str(self)));
      });
}

}  // namespace

nb::object to_python(DType dtype) { return nb::borrow(dtype_objects[static_cast<std::size_t>(dtype)]); }

nb::object to_python(DeviceId device) {
  const bool counted = device.type != DeviceType::kCPU && device.type != DeviceType::kMeta;
  return nb::cast(DeviceObject{device, counted});
}

nb::object size_tuple(const Dims& dims) {
  nb::object plain = plain_tuple(dims);
  if (size_type == nullptr) return plain;
  return nb::steal(PyObject_CallOneArg(size_type, plain.ptr()));
}

std::optional<DType> to_dtype(nb::handle object) noexcept {
  if (nb::isinstance<DTypeObject>(object)) return nb::inst_ptr<DTypeObject>(object)->dtype;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyFloat_Type)) return default_dtype();
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::kInt64;
  if (object.ptr() == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::kBool;
  return std::nullopt;
}

Where::operator DeviceId() const {
  if (id.type != DeviceType::kCUDA) return id;
  try {
    static_cast<void>(device_stream(id));  // opens it
    return id;
  } catch (const DeviceError& error) {
    const std::string text =
        fmt::format("infeed.train not compiled with CUDA enabled, or no such device: {}", error.what());
    PyErr_SetString(PyExc_AssertionError, text.c_str());
  }
  throw nb::python_error();
}

std::optional<DeviceId> to_device(nb::handle object) noexcept try {
  if (nb::isinstance<DeviceObject>(object)) return nb::inst_ptr<DeviceObject>(object)->id;
  if (nb::isinstance<nb::str>(object) || (PyLong_Check(object.ptr()) && !PyBool_Check(object.ptr())))
    return device_from(nb::borrow(object), {}).id;
  return std::nullopt;
} catch (const std::exception&) {
  return std::nullopt;  // no such name
}

void bind_types(nb::module_& module) {
  bind_dtype(module);
  bind_device(module);
  module.def("_set_size_type", [](nb::object type) { size_type = type.release().ptr(); });
  module.def("set_default_dtype", [](DType dtype) { set_default_dtype(dtype); });
  module.def("get_default_dtype", [] { return default_dtype(); });
  module.def(
      "set_default_device", [](Device device) { set_default_device(device.value_or(DeviceId{})); }, "device"_a.none());
  module.def("get_default_device", [] { return default_device(); });
  module.def("promote_types", [](DType a, DType b) { return promote_types(a, b); });
  module.def("can_cast", [](DType from, DType to) { return can_cast(from, to); });
}

}  // namespace infeed::python
