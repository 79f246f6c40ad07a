#include <nanobind/nanobind.h>

#include "loader.h"

namespace infeed::python {

BatchFactory::BatchFactory(Output output, nb::object batch_type)
    : arrays_(output),
      type_(std::move(batch_type)),
      no_arguments_(nb::steal(PyTuple_New(0))),
      info_(nb::steal(PyUnicode_InternFromString("_info"))),
      dict_(PyObject_IsSubclass(type_.ptr(), reinterpret_cast<PyObject*>(&PyDict_Type)) == 1) {}

nb::object BatchFactory::make(const Batch& batch) {
  SharedMemory memory(batch.owner());
  nb::object made = dict_ ? as_dict(batch.arrays(), memory) : as_tuple(batch.arrays(), memory);
  const nb::object info = nb::cast(BatchInfo{batch.indices(), batch.epoch(), batch.number()});
  if (PyObject_GenericSetAttr(made.ptr(), info_.ptr(), info.ptr()) != 0) nb::raise_python_error();
  return made;
}

nb::object BatchFactory::as_dict(const std::vector<NamedArray>& fields, SharedMemory& memory) {
  auto* type = reinterpret_cast<PyTypeObject*>(type_.ptr());
  nb::object dict = nb::steal(PyDict_Type.tp_new(type, no_arguments_.ptr(), nullptr));
  if (!dict.is_valid()) nb::raise_python_error();
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const nb::object array = arrays_.make(fields[i].array, memory);
    if (PyDict_SetItem(dict.ptr(), key(i, fields[i].name).ptr(), array.ptr()) != 0) nb::raise_python_error();
  }
  return dict;
}

nb::object BatchFactory::as_tuple(const std::vector<NamedArray>& fields, SharedMemory& memory) const {
  nb::object items = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(fields.size())));
  for (std::size_t i = 0; i < fields.size(); ++i)
    PyTuple_SET_ITEM(items.ptr(), static_cast<Py_ssize_t>(i), arrays_.make(fields[i].array, memory).release().ptr());
  return type_(items);
}

nb::handle BatchFactory::key(std::size_t field, const std::string& name) {
  if (keys_.size() <= field) keys_.resize(field + 1);
  auto& [known, object] = keys_[field];
  if (known != name || !object.is_valid()) {
    known = name;
    object = nb::steal(PyUnicode_InternFromString(name.c_str()));
  }
  return object;
}

void bind_batch(nb::module_& module) {
  nb::class_<BatchInfo>(module, "BatchInfo")
      .def(nb::new_([](const nb::object& indices, std::uint64_t epoch, std::uint64_t number) {
        BatchInfo info{{}, epoch, number};
        for (const nb::handle index : indices) info.indices.push_back(nb::cast<std::int64_t>(index));
        return info;
      }))
      .def_prop_ro("indices",
                   [](const BatchInfo& self) {
                     nb::list indices;
                     for (const std::int64_t index : self.indices) indices.append(index);
                     return indices;
                   })
      .def_prop_ro("size", [](const BatchInfo& self) { return self.indices.size(); })
      .def_ro("epoch", &BatchInfo::epoch)
      .def_ro("number", &BatchInfo::number);
}

}  // namespace infeed::python
