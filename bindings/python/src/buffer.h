#pragma once
/// Python's buffer protocol over memory of the library.

#include <nanobind/nanobind.h>

#include <new>

#include "infeed/base/array_view.h"

namespace infeed::python {

/// Fills `buffer`, which holds `object`; -1 and Python's error where no memory is left. `format` is that of the struct
/// module.
inline int fill_buffer(PyObject* object, Py_buffer* buffer, const ArrayView& view, const char* format) noexcept {
  const int ndim = view.shape.ndim();
  const auto size = static_cast<Py_ssize_t>(itemsize(view.dtype));
  auto* sizes = new (std::nothrow) Py_ssize_t[2 * static_cast<std::size_t>(ndim) + 1];
  if (sizes == nullptr) {
    PyErr_NoMemory();
    return -1;
  }
  for (int i = 0; i < ndim; ++i) {
    sizes[i] = view.shape[i];
    sizes[ndim + i] = view.strides[i] * size;
  }
  *buffer = {};
  buffer->buf = view.data;
  buffer->obj = Py_NewRef(object);
  buffer->len = static_cast<Py_ssize_t>(view.nbytes());
  buffer->itemsize = size;
  buffer->format = const_cast<char*>(format);
  buffer->ndim = ndim;
  buffer->shape = sizes;
  buffer->strides = sizes + ndim;
  buffer->internal = sizes;
  return 0;
}

inline void release_buffer(PyObject*, Py_buffer* buffer) noexcept {
  delete[] static_cast<Py_ssize_t*>(buffer->internal);
}

}  // namespace infeed::python
