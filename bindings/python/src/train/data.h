#pragma once
/// Numbers of Python's as tensors: nested lists, and arrays that offer the buffer protocol or DLPack.

#include "convert.h"

namespace infeed::python {

/// A view by the buffer protocol, filled by PyObject_GetBuffer(). Threads: destroyed with the GIL held.
struct HeldBuffer {
  Py_buffer buffer{};
  HeldBuffer() = default;
  HeldBuffer(HeldBuffer&& other) noexcept : buffer(std::exchange(other.buffer, {})) {}
  ~HeldBuffer() {
    if (buffer.obj != nullptr) PyBuffer_Release(&buffer);
  }
};

/// A copy of nested sequences of numbers, as train.tensor() makes it; dtypes are inferred unless given.
[[nodiscard]] Tensor tensor_of_data(nb::handle data, std::optional<DType> dtype);

/// True for what from_array() takes: not for strings and lists.
[[nodiscard]] bool is_array(nb::handle object) noexcept;
/// The array's own memory, kept alive by the tensor. Throws TypeError, or ValueError for negative strides.
[[nodiscard]] Tensor from_array(nb::handle array);

}  // namespace infeed::python
