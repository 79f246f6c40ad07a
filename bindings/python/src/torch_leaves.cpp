#include <algorithm>
#include <memory>
#include <new>

#include "leaves.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

// All of torch's dtypes that its DLPack takes; older releases lack some.
constexpr const char* kDTypes[] = {
    "uint8",     "int8",       "int16",         "int32",       "int64",           "uint16",          "uint32",
    "uint64",    "bool",       "float16",       "bfloat16",    "float32",         "float64",         "complex32",
    "complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"};

enum DTypeCode : std::uint8_t { kComplexCode = 5, kBoolCode = 6 };
constexpr std::int32_t kCpu = 1;

PyObject* interned(const char* name) { return PyUnicode_InternFromString(name); }

/// A method or attribute that answers with a bool; an error counts as `yes`.
bool attribute_is_true(PyObject* object, PyObject* name, bool call) {
  PyObject* const answer = call ? PyObject_VectorcallMethod(name, &object, 1 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)
                                : PyObject_GetAttr(object, name);
  if (answer == nullptr) PyErr_Clear();
  Py_XDECREF(answer);  // True and False are never freed
  return answer != Py_False;
}

/// A tensor's descriptor, with the sizes and strides behind it.
struct Block {
  DLManagedTensorVersioned managed;
  Owner* owner;
  std::int64_t dims[1];  // 2 * ndim of them
};

void release(DLManagedTensorVersioned* managed) {
  auto* const block = static_cast<Block*>(managed->manager);
  block->owner->drop();
  ::operator delete(block);
}

DLManagedTensorVersioned* describe(std::byte* data, const LeafShape& leaf, Owner& owner) {
  const std::size_t ndim = leaf.shape.size();
  void* const memory = ::operator new(sizeof(Block) + 2 * ndim * sizeof(std::int64_t));
  auto* const block = new (memory) Block{};
  std::copy(leaf.shape.begin(), leaf.shape.end(), block->dims);
  std::copy(leaf.strides.begin(), leaf.strides.end(), block->dims + ndim);
  block->owner = &owner;
  block->managed.manager = block;
  block->managed.deleter = release;
  block->managed.tensor.data = data;
  block->managed.tensor.device = {kCpu, 0};
  block->managed.tensor.ndim = static_cast<std::int32_t>(ndim);
  block->managed.tensor.dtype = leaf.dtype;
  block->managed.tensor.shape = block->dims;
  block->managed.tensor.strides = block->dims + ndim;
  owner.keep();
  return &block->managed;
}

}  // namespace

const Torch* Torch::loaded() {
  static const Torch* torch = nullptr;
  if (torch == nullptr) torch = load();
  return torch;
}

const Torch* Torch::load() {
  PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch");
  const nb::handle name(module);
  if (module == nullptr || !nb::hasattr(name, "Tensor") || !nb::hasattr(name, "_mkldnn"))
    return nullptr;  // half imported
  const nb::object type = name.attr("Tensor");
  if (!nb::hasattr(type, "__dlpack_c_exchange_api__")) return nullptr;
  const nb::object capsule = type.attr("__dlpack_c_exchange_api__");
  auto torch = std::make_unique<Torch>();
  torch->api_ = static_cast<const DLPackExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (torch->api_ == nullptr) throw nb::python_error();
  nb::list dtypes;
  for (const char* dtype : kDTypes)
    if (nb::hasattr(name, dtype)) dtypes.append(name.attr(dtype));
  torch->dtypes_ = PyFrozenSet_New(dtypes.ptr());
  torch->strided_ = nb::object(name.attr("strided")).release().ptr();
  torch->tensor_type_ = reinterpret_cast<PyTypeObject*>(nb::object(type).release().ptr());
  return torch.release();  // for the life of the process
}

bool Torch::is_dense(PyObject* tensor) const {
  static PyObject* const is_cpu = interned("is_cpu");
  static PyObject* const is_nested = interned("is_nested");
  static PyObject* const is_quantized = interned("is_quantized");
  const nb::handle object(tensor);
  return attribute_is_true(tensor, is_cpu, false) && nb::object(object.attr("layout")).ptr() == strided_ &&
         !attribute_is_true(tensor, is_nested, false) && !attribute_is_true(tensor, is_quantized, false) &&
         PySet_Contains(dtypes_, nb::object(object.attr("dtype")).ptr()) == 1;
}

bool Torch::is_plain(PyObject* tensor, DType dtype) const {
  static PyObject* const requires_grad = interned("requires_grad");
  static PyObject* const is_neg = interned("is_neg");
  static PyObject* const is_conj = interned("is_conj");
  using nb::dlpack::dtype_code;
  if (dtype.code == static_cast<std::uint8_t>(dtype_code::Int) ||
      dtype.code == static_cast<std::uint8_t>(dtype_code::UInt) || dtype.code == kBoolCode)
    return true;
  if (attribute_is_true(tensor, requires_grad, false) || attribute_is_true(tensor, is_neg, true)) return false;
  return dtype.code != kComplexCode || !attribute_is_true(tensor, is_conj, true);
}

bool Torch::borrow(PyObject* tensor, LeafView& view) const {
  nb::dlpack::dltensor out;
  if (api_->borrow(tensor, &out) != 0) {
    PyErr_Clear();
    return false;
  }
  if (out.device.device_type != kCpu || out.ndim > kMaxDims) return false;
  view.data = static_cast<const std::byte*>(out.data) + out.byte_offset;
  view.dtype = out.dtype;
  view.ndim = out.ndim;
  const auto item = static_cast<std::int64_t>(item_bytes(out.dtype));
  view.numel = 1;
  view.contiguous = true;
  for (int d = out.ndim; d-- > 0;) {
    view.shape[d] = out.shape[d];
    view.strides[d] = out.strides[d] * item;
    if (out.shape[d] != 1 && out.strides[d] != static_cast<std::int64_t>(view.numel)) view.contiguous = false;
    view.numel *= static_cast<std::size_t>(out.shape[d]);
  }
  if (view.numel == 0) view.contiguous = true;
  return true;
}

nb::object Torch::make(std::byte* data, const LeafShape& leaf, Owner& owner) const {
  DLManagedTensorVersioned* const managed = describe(data, leaf, owner);
  void* object = nullptr;
  if (api_->to_object(managed, &object) != 0) {
    release(managed);
    throw nb::python_error();
  }
  return nb::steal(static_cast<PyObject*>(object));
}

}  // namespace infeed::python
