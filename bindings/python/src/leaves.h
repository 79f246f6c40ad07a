#pragma once
/// Tensors, arrays and NumPy scalars as plain memory, and tensors and arrays over memory. Start with Torch and NumPy.
///
/// Neither library is linked or imported here: they count as present once sys.modules has them. Tensors cross through
/// torch's DLPack exchange table, arrays through NumPy's C table, whose places are part of its ABI.
/// Threads: with the GIL, unless said.

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dlpack.h"

namespace infeed::python {

using DType = nanobind::dlpack::dtype;

inline bool same(DType a, DType b) { return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes; }
inline std::size_t item_bytes(DType dtype) { return (std::size_t{dtype.bits} * dtype.lanes + 7) / 8; }

inline constexpr int kMaxDims = 64;

/// Dense memory of an object, on loan while the object lives. Strides are in bytes.
struct LeafView {
  const std::byte* data = nullptr;
  DType dtype{};
  int ndim = 0;
  std::int64_t shape[kMaxDims];
  std::int64_t strides[kMaxDims];
  bool contiguous = false;  ///< in C order
  std::size_t numel = 0;

  [[nodiscard]] std::span<const std::int64_t> dims() const { return {shape, static_cast<std::size_t>(ndim)}; }
  [[nodiscard]] std::span<const std::int64_t> steps() const { return {strides, static_cast<std::size_t>(ndim)}; }
  [[nodiscard]] std::size_t nbytes() const { return numel * item_bytes(dtype); }
  /// Bytes from the first to the last element; strides must not be negative.
  [[nodiscard]] std::size_t span_bytes() const;
  /// Sets numel and contiguous from the rest.
  void measure();
  /// In C order. Gives the GIL up for a large copy: hold a reference to the object.
  void copy_to(std::byte* out) const;
};

/// What a new tensor or array is to look like. Strides are in items.
struct LeafShape {
  DType dtype{};
  std::span<const std::int64_t> shape;
  std::span<const std::int64_t> strides;
};

/// C order, as torch writes it where a dimension is 0.
[[nodiscard]] std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape);

/// Keeps a Python object for the tensors that view its memory. References are dropped on any thread; only the last one
/// takes the GIL.
class Owner {
 public:
  explicit Owner(nanobind::object object) : object_(object.release().ptr()) {}
  void keep() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  void drop() noexcept;
  [[nodiscard]] long references() const noexcept { return references_.load(std::memory_order_relaxed); }

 private:
  std::atomic<long> references_{1};
  PyObject* object_;
};

/// The reference that a scope holds.
class OwnerScope {
 public:
  explicit OwnerScope(nanobind::object object) : owner_(new Owner(std::move(object))) {}
  ~OwnerScope() { owner_->drop(); }
  OwnerScope(const OwnerScope&) = delete;
  OwnerScope& operator=(const OwnerScope&) = delete;
  [[nodiscard]] Owner& operator*() const noexcept { return *owner_; }

 private:
  Owner* owner_;
};

/// torch as far as messages need it.
class Torch {
 public:
  /// nullptr until torch has been imported.
  [[nodiscard]] static const Torch* loaded();

  /// Of the type torch.Tensor itself: subclasses and parameters are not.
  [[nodiscard]] bool is_tensor(PyObject* object) const { return Py_TYPE(object) == tensor_type_; }
  /// A dense CPU tensor of a dtype that DLPack has. Ask before borrow(): its refusal costs a C++ exception.
  [[nodiscard]] bool is_dense(PyObject* tensor) const;
  /// Without requires_grad, conj and neg bit, which the memory alone does not show.
  [[nodiscard]] bool is_plain(PyObject* tensor, DType dtype) const;
  /// false: no dense CPU tensor.
  bool borrow(PyObject* tensor, LeafView& view) const;
  /// A tensor over memory that `owner` keeps.
  [[nodiscard]] nanobind::object make(std::byte* data, const LeafShape& leaf, Owner& owner) const;

 private:
  static const Torch* load();

  PyTypeObject* tensor_type_ = nullptr;
  PyObject* strided_ = nullptr;
  PyObject* dtypes_ = nullptr;  // frozenset
  const DLPackExchangeApi* api_ = nullptr;
};

/// NumPy as far as messages need it.
class NumPy {
 public:
  /// nullptr until NumPy has been imported, or where its ABI is not known.
  [[nodiscard]] static const NumPy* loaded();

  /// An ndarray or a memmap, not another subclass.
  [[nodiscard]] bool is_array(PyObject* object) const {
    return Py_TYPE(object) == array_type_ || Py_TYPE(object) == memmap_type_;
  }
  /// The dtype of an array's elements in native byte order; nullopt: one that tensors do not have.
  [[nodiscard]] std::optional<DType> dtype_of(PyObject* array) const;
  /// The object that stands for the dtype, to compare by identity.
  [[nodiscard]] static PyObject* descr_of(PyObject* array);
  /// false: too many dimensions.
  bool borrow(PyObject* array, DType dtype, LeafView& view) const;
  /// The dtype of a scalar type; nullopt: not one that torch.as_tensor takes in a list.
  [[nodiscard]] std::optional<DType> scalar_dtype(PyTypeObject* type) const;
  [[nodiscard]] static const std::byte* scalar_value(PyObject* scalar) {
    return reinterpret_cast<const std::byte*>(scalar) + sizeof(PyObject);
  }
  /// An array over memory that `base` keeps; throws TypeError for a dtype that NumPy does not have.
  [[nodiscard]] nanobind::object make(std::byte* data, const LeafShape& leaf, nanobind::handle base) const;

 private:
  static const NumPy* load();
  void load_types(nanobind::handle numpy);

  void** table_ = nullptr;
  PyTypeObject* array_type_ = nullptr;
  PyTypeObject* memmap_type_ = nullptr;
  struct Scalar {
    PyTypeObject* type;
    DType dtype;
  };
  std::vector<Scalar> scalars_;
};

}  // namespace infeed::python
