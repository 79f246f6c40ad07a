#include <algorithm>
#include <cstring>
#include <memory>

#include "leaves.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

/// The first fields of NumPy's array and dtype objects: the part that its own inline functions read, in both ABIs.
struct ArrayFields {
  PyObject head;
  char* data;
  int ndim;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  PyObject* base;
  PyObject* descr;
  int flags;
};
struct DescrFields {
  PyObject head;
  PyTypeObject* type;
  char kind, letter, byte_order, flags;
  int number;
};

/// Places in the C table.
enum Place { kAbiVersion = 0, kArrayType = 2, kDescrFromType = 45, kNewFromDescr = 94, kSetBaseObject = 282 };
constexpr unsigned kAbi1 = 0x01000009, kAbi2 = 0x02000000;
constexpr int kAligned = 0x0100, kWriteable = 0x0400;

enum Code : std::uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kComplex = 5, kBool = 6 };
constexpr std::uint8_t kLongBits = 8 * sizeof(long);

/// By NumPy's type number; bits 0: tensors have no such dtype.
constexpr DType kByNumber[] = {{kBool, 8, 1},
                               {kInt, 8, 1},
                               {kUInt, 8, 1},
                               {kInt, 16, 1},
                               {kUInt, 16, 1},
                               {kInt, 32, 1},
                               {kUInt, 32, 1},
                               {kInt, kLongBits, 1},
                               {kUInt, kLongBits, 1},
                               {kInt, 64, 1},
                               {kUInt, 64, 1},
                               {kFloat, 32, 1},
                               {kFloat, 64, 1},
                               {0, 0, 0},
                               {kComplex, 64, 1},
                               {kComplex, 128, 1},
                               {0, 0, 0},
                               {0, 0, 0},
                               {0, 0, 0},
                               {0, 0, 0},
                               {0, 0, 0},
                               {0, 0, 0},
                               {0, 0, 0},
                               {kFloat, 16, 1}};
constexpr int kNumbers = sizeof(kByNumber) / sizeof(kByNumber[0]);

struct NamedDType {
  const char* name;
  DType dtype;
};
/// Scalars that torch.as_tensor takes in a list; it refuses uint64.
constexpr NamedDType kScalars[] = {
    {"bool_", {kBool, 8, 1}},          {"int8", {kInt, 8, 1}},       {"int16", {kInt, 16, 1}},
    {"int32", {kInt, 32, 1}},          {"int64", {kInt, 64, 1}},     {"uint8", {kUInt, 8, 1}},
    {"uint16", {kUInt, 16, 1}},        {"uint32", {kUInt, 32, 1}},   {"float16", {kFloat, 16, 1}},
    {"float32", {kFloat, 32, 1}},      {"float64", {kFloat, 64, 1}}, {"complex64", {kComplex, 64, 1}},
    {"complex128", {kComplex, 128, 1}}};

int number_of(DType dtype) {
  for (int number = 0; number < kNumbers; ++number)
    if (kByNumber[number].bits != 0 && same(kByNumber[number], dtype)) return number;
  return -1;
}

/// The C table of `numpy`, or nullptr where its ABI is not one of the two.
void** table_of(PyObject* numpy) {
  const char* const core =
      nb::hasattr(numpy, "_core") ? "numpy._core._multiarray_umath" : "numpy.core._multiarray_umath";
  const nb::object capsule = nb::module_::import_(core).attr("_ARRAY_API");
  auto** const table = static_cast<void**>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
  if (table == nullptr) throw nb::python_error();
  const unsigned abi = reinterpret_cast<unsigned (*)()>(table[kAbiVersion])();
  return abi == kAbi1 || abi == kAbi2 ? table : nullptr;
}

PyTypeObject* type_named(nb::handle module, const char* name) {
  return reinterpret_cast<PyTypeObject*>(nb::object(module.attr(name)).release().ptr());  // for the life of the process
}

}  // namespace

const NumPy* NumPy::loaded() {
  static const NumPy* numpy = nullptr;
  static bool unknown = false;
  if (numpy == nullptr && !unknown) {
    PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
    if (module == nullptr || !nb::hasattr(module, "memmap")) return nullptr;  // not imported, or half
    numpy = load();
    unknown = numpy == nullptr;
  }
  return numpy;
}

const NumPy* NumPy::load() {
  const nb::handle module(PyDict_GetItemString(PyImport_GetModuleDict(), "numpy"));
  auto numpy = std::make_unique<NumPy>();
  numpy->table_ = table_of(module.ptr());
  if (numpy->table_ == nullptr) return nullptr;
  numpy->load_types(module);
  return numpy.release();
}

void NumPy::load_types(nb::handle numpy) {
  array_type_ = static_cast<PyTypeObject*>(table_[kArrayType]);
  memmap_type_ = type_named(numpy, "memmap");
  for (const NamedDType& scalar : kScalars) scalars_.push_back({type_named(numpy, scalar.name), scalar.dtype});
}

std::optional<DType> NumPy::dtype_of(PyObject* array) const {
  const auto& descr = *reinterpret_cast<const DescrFields*>(descr_of(array));
  if (descr.byte_order != '=' && descr.byte_order != '|') return std::nullopt;
  if (descr.number < 0 || descr.number >= kNumbers || kByNumber[descr.number].bits == 0) return std::nullopt;
  return kByNumber[descr.number];
}

PyObject* NumPy::descr_of(PyObject* array) { return reinterpret_cast<const ArrayFields*>(array)->descr; }

bool NumPy::borrow(PyObject* array, DType dtype, LeafView& view) const {
  const auto& fields = *reinterpret_cast<const ArrayFields*>(array);
  if (fields.ndim > kMaxDims) return false;
  view.data = reinterpret_cast<const std::byte*>(fields.data);
  view.dtype = dtype;
  view.ndim = fields.ndim;
  std::copy_n(fields.shape, fields.ndim, view.shape);
  std::copy_n(fields.strides, fields.ndim, view.strides);
  view.measure();
  return true;
}

std::optional<DType> NumPy::scalar_dtype(PyTypeObject* type) const {
  for (const Scalar& scalar : scalars_)
    if (scalar.type == type) return scalar.dtype;
  return std::nullopt;
}

nb::object NumPy::make(std::byte* data, const LeafShape& leaf, nb::handle base) const {
  const int number = number_of(leaf.dtype);
  if (number < 0) throw nb::type_error("NumPy has no dtype for this tensor: import torch where the message is read.");
  Py_ssize_t strides[kMaxDims];
  const auto item = static_cast<std::int64_t>(item_bytes(leaf.dtype));
  for (std::size_t d = 0; d < leaf.shape.size(); ++d) strides[d] = leaf.strides[d] * item;
  const auto descr_from_type = reinterpret_cast<PyObject* (*)(int)>(table_[kDescrFromType]);
  const auto new_from_descr =
      reinterpret_cast<PyObject* (*)(PyTypeObject*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*, int,
                                     PyObject*)>(table_[kNewFromDescr]);
  const auto set_base = reinterpret_cast<int (*)(PyObject*, PyObject*)>(table_[kSetBaseObject]);
  PyObject* const array = new_from_descr(array_type_, descr_from_type(number), static_cast<int>(leaf.shape.size()),
                                         reinterpret_cast<const Py_ssize_t*>(leaf.shape.data()), strides, data,
                                         kAligned | kWriteable, nullptr);
  if (array == nullptr) throw nb::python_error();
  nb::object result = nb::steal(array);
  if (set_base(array, base.inc_ref().ptr()) != 0) throw nb::python_error();
  return result;
}

}  // namespace infeed::python
