#pragma once
/// Arrays of the engine as Python objects: views of the same memory, no copy.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dlpack.h"
#include "infeed/base/array_view.h"

namespace infeed::python {

namespace nb = nanobind;

/// What arrays are handed out as.
enum class Output { kNumPy, kTorch, kDLPack };
/// "numpy", "torch" or "dlpack"; throws ConfigError.
[[nodiscard]] Output output_from(const std::string& name);

/// `infeed.Array`: speaks DLPack and the buffer protocol; needs neither NumPy nor torch.
struct Array {
  ArrayView view;
  std::shared_ptr<void> owner;
};

/// The memory that the arrays of one batch share. Its last reference, from either language, gives it back.
class SharedMemory {
 public:
  explicit SharedMemory(std::shared_ptr<void> owner) : owner_(std::move(owner)) {}
  [[nodiscard]] const std::shared_ptr<void>& owner() const noexcept { return owner_; }
  /// A Python object that holds the memory; made at the first call.
  [[nodiscard]] nb::handle capsule();

 private:
  std::shared_ptr<void> owner_;
  nb::object capsule_;
};

/// Makes arrays of one kind. Threads: all calls with the GIL.
class ArrayFactory {
 public:
  /// Imports what `output` names, and nothing else. Throws ImportError.
  explicit ArrayFactory(Output output);

  [[nodiscard]] nb::object make(const ArrayView& view, SharedMemory& memory) const;
  /// Throws ConfigError where this kind of array cannot hold `dtype`, naming the field.
  void check(const std::string& field, DType dtype) const;

 private:
  [[nodiscard]] nb::object make_numpy(const ArrayView& view, SharedMemory& memory) const;
  [[nodiscard]] nb::object make_torch(const ArrayView& view, SharedMemory& memory) const;

  Output output_;
  void** numpy_ = nullptr;                    ///< NumPy's table of C functions
  const DLPackExchangeApi* torch_ = nullptr;  ///< null where torch is too old to have one
  nb::object from_dlpack_;                    ///< torch's
};

/// A borrowed view of what Python handed in, and what keeps it alive (released with the GIL, on any thread).
struct BorrowedArray {
  ArrayView view;
  std::shared_ptr<const void> owner;
};
/// Anything in CPU memory with DLPack or the buffer protocol. Throws ConfigError that names `what`.
[[nodiscard]] BorrowedArray borrow_array(nb::handle object, const std::string& what);

/// A Python-side value for C++ owners that may drop it without the GIL.
template <typename Value>
[[nodiscard]] std::shared_ptr<const void> keep_alive(Value value) {
  return {new Value(std::move(value)), [](const void* held) {
            if (!Py_IsInitialized()) return;  // the owner is static: the interpreter is gone, and the value with it
            const nb::gil_scoped_acquire locked;
            delete static_cast<const Value*>(held);
          }};
}

void bind_array(nb::module_& module);

}  // namespace infeed::python
