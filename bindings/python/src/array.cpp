#include "array.h"

#include <nanobind/stl/string.h>

#include <array>
#include <cstring>
#include <new>
#include <optional>

#include "buffer.h"
#include "infeed/base/error.h"

namespace infeed::python {
namespace {

// NumPy's table of C functions (numpy/__multiarray_api.h): these places have not moved since NumPy 1.7.
constexpr int kNumPyArrayType = 2, kNumPyDescrFromType = 45, kNumPyNewFromDescr = 94, kNumPySetBase = 282;
constexpr int kNumPyCArray = 0x1 | 0x100 | 0x400;  // C-contiguous, aligned, writable
using DescrFromType = PyObject* (*)(int);
using NewFromDescr = PyObject* (*)(void*, PyObject*, int, const Py_ssize_t*, const Py_ssize_t*, void*, int, PyObject*);
using SetBase = int (*)(PyObject*, PyObject*);

constexpr int kNoNumPyType = -1;
// By DType: NumPy's type number and the buffer protocol's (struct module's) format.
struct Naming {
  int numpy;
  const char* format;
  nb::dlpack::dtype_code code;
};
using Code = nb::dlpack::dtype_code;
constexpr std::array<Naming, kNumDTypes> kNamings = {{{0, "?", Code::Bool},
                                                      {2, "B", Code::UInt},
                                                      {1, "b", Code::Int},
                                                      {3, "h", Code::Int},
                                                      {4, "H", Code::UInt},
                                                      {5, "i", Code::Int},
                                                      {6, "I", Code::UInt},
                                                      {7, "l", Code::Int},
                                                      {8, "L", Code::UInt},
                                                      {23, "e", Code::Float},
                                                      {kNoNumPyType, nullptr, Code::Bfloat},
                                                      {11, "f", Code::Float},
                                                      {12, "d", Code::Float}}};

const Naming& naming(DType dtype) { return kNamings[static_cast<std::size_t>(dtype)]; }

nb::dlpack::dtype to_dlpack(DType dtype) {
  return {static_cast<std::uint8_t>(naming(dtype).code), static_cast<std::uint8_t>(8 * itemsize(dtype)), 1};
}

std::optional<DType> from_dlpack(nb::dlpack::dtype dtype) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (to_dlpack(static_cast<DType>(i)) == dtype) return static_cast<DType>(i);
  }
  return std::nullopt;
}

// One block: the tensor, its sizes and its hold on the memory. `Managed` is either generation of DLPack's struct.
template <typename Managed>
struct Export {
  Managed managed;
  Shape shape;
  Strides strides;
  std::shared_ptr<void> owner;

  static Managed* make(const ArrayView& view, std::shared_ptr<void> owner) {
    auto* self = new Export{{}, view.shape, view.strides, std::move(owner)};
    self->managed.manager = self;
    self->managed.deleter = [](Managed* managed) { delete static_cast<Export*>(managed->manager); };
    self->managed.tensor = {.data = view.data,
                            .device = {static_cast<std::int32_t>(view.device.type), view.device.index},
                            .ndim = view.shape.ndim(),
                            .dtype = to_dlpack(view.dtype),
                            .shape = self->shape.ndim() > 0 ? &self->shape[0] : nullptr,
                            .strides = self->strides.ndim() > 0 ? &self->strides[0] : nullptr,
                            .byte_offset = 0};
    return &self->managed;
  }
};

// A capsule that nobody took still owns its tensor; who takes it gives it another name.
template <typename Managed>
nb::object tensor_capsule(Managed* managed, const char* name) {
  PyObject* capsule = PyCapsule_New(managed, name, [](PyObject* self) {
    const char* now = PyCapsule_GetName(self);
    if (now == nullptr || std::strncmp(now, "used", 4) == 0) return;
    auto* untaken = static_cast<Managed*>(PyCapsule_GetPointer(self, now));
    untaken->deleter(untaken);
  });
  if (capsule == nullptr) {
    managed->deleter(managed);
    nb::raise_python_error();
  }
  return nb::steal(capsule);
}

void** numpy_table() {
  nb::object core;
  try {
    core = nb::module_::import_("numpy._core._multiarray_umath");
  } catch (nb::python_error& error) {  // NumPy 1.x
    if (!error.matches(PyExc_ModuleNotFoundError)) throw;
    core = nb::module_::import_("numpy.core._multiarray_umath");
  }
  auto** table = static_cast<void**>(PyCapsule_GetPointer(core.attr("_ARRAY_API").ptr(), nullptr));
  if (table == nullptr) nb::raise_python_error();
  return table;
}

const DLPackExchangeApi* torch_table(nb::handle torch) {
  const nb::object capsule = nb::getattr(torch.attr("Tensor"), "__dlpack_c_exchange_api__", nb::none());
  if (capsule.is_none()) return nullptr;
  const auto* api = static_cast<DLPackExchangeApi*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  if (api == nullptr) PyErr_Clear();
  return api != nullptr && api->major == kDLPackMajor ? api : nullptr;
}

bool asks_for_host(const nb::object& device) {
  return device.is_none() || nb::cast<int>(device[0]) == static_cast<int>(DeviceType::kCPU);
}

Array contiguous_copy(const Array& self) {
  const std::size_t nbytes = self.view.nbytes();
  auto* bytes = static_cast<std::byte*>(::operator new[](nbytes, std::align_val_t{64}));
  const std::shared_ptr<void> owner(bytes, [](void* p) { ::operator delete[](p, std::align_val_t{64}); });
  std::memcpy(bytes, self.view.data, nbytes);
  return {ArrayView(bytes, self.view.dtype, self.view.shape), owner};
}

// Older consumers do not say which version they know: they get the struct of before 1.0.
nb::object dlpack_of(const Array& self, const nb::object& max_version, const nb::object& device,
                     const nb::object& copy) {
  if (!asks_for_host(device)) throw nb::buffer_error("this array lies in the CPU's memory; copy it to the device.");
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  const Array source = copies ? contiguous_copy(self) : self;
  if (max_version.is_none() || nb::cast<int>(max_version[0]) < static_cast<int>(kDLPackMajor))
    return tensor_capsule(Export<DLManagedTensor>::make(source.view, source.owner), "dltensor");
  auto* managed = Export<DLManagedTensorVersioned>::make(source.view, source.owner);
  managed->flags = copies ? kDLPackCopied : 0;
  return tensor_capsule(managed, "dltensor_versioned");
}

int get_buffer(PyObject* object, Py_buffer* buffer, int /*flags*/) noexcept {
  const Array& self = *nb::inst_ptr<Array>(object);
  const char* format = naming(self.view.dtype).format;
  if (format == nullptr) {
    PyErr_SetString(PyExc_BufferError, "bfloat16 has no buffer format; take the array through __dlpack__.");
    return -1;
  }
  return fill_buffer(object, buffer, self.view, format);
}

nb::tuple to_tuple(const Dims& dims) {
  nb::list list;
  for (const std::int64_t value : dims) list.append(value);
  return nb::tuple(list);
}

std::string array_repr(const Array& self) {
  return "Array(" + std::string(to_string(self.view.dtype)) + ", " + self.view.shape.str() + ")";
}

ArrayView view_of(const nb::ndarray<nb::ro>& array, DType dtype) {
  ArrayView view;
  view.data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  view.dtype = dtype;
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    view.shape.push_back(static_cast<std::int64_t>(array.shape(i)));
    view.strides.push_back(array.stride(i));
  }
  return view;
}

std::string type_of(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

}  // namespace

Output output_from(const std::string& name) {
  if (name == "numpy") return Output::kNumPy;
  if (name == "torch") return Output::kTorch;
  if (name == "dlpack") return Output::kDLPack;
  throw ConfigError("output is '" + name + "'; it can be 'numpy', 'torch' or 'dlpack'.");
}

nb::handle SharedMemory::capsule() {
  if (!capsule_.is_valid()) {
    auto* held = new std::shared_ptr<void>(owner_);
    PyObject* capsule = PyCapsule_New(held, "infeed memory", [](PyObject* self) {
      delete static_cast<std::shared_ptr<void>*>(PyCapsule_GetPointer(self, "infeed memory"));
    });
    if (capsule == nullptr) {
      delete held;
      nb::raise_python_error();
    }
    capsule_ = nb::steal(capsule);
  }
  return capsule_;
}

ArrayFactory::ArrayFactory(Output output) : output_(output) {
  if (output_ == Output::kNumPy) numpy_ = numpy_table();
  if (output_ != Output::kTorch) return;
  const nb::object torch = nb::module_::import_("torch");
  torch_ = torch_table(torch);
  from_dlpack_ = nb::module_::import_("torch.utils.dlpack").attr("from_dlpack");
}

nb::object ArrayFactory::make(const ArrayView& view, SharedMemory& memory) const {
  switch (output_) {
    case Output::kNumPy: return make_numpy(view, memory);
    case Output::kTorch: return make_torch(view, memory);
    case Output::kDLPack: break;
  }
  return nb::cast(Array{view, memory.owner()});
}

void ArrayFactory::check(const std::string& field, DType dtype) const {
  if (output_ == Output::kNumPy && naming(dtype).numpy == kNoNumPyType)
    throw ConfigError("field '" + field + "' is " + std::string(to_string(dtype)) +
                      ", which NumPy does not have. Use output=\"torch\" or \"dlpack\", or another dtype.");
}

nb::object ArrayFactory::make_numpy(const ArrayView& view, SharedMemory& memory) const {
  std::array<Py_ssize_t, kMaxDims> sizes{}, strides{};
  for (int i = 0; i < view.shape.ndim(); ++i) {
    sizes[static_cast<std::size_t>(i)] = view.shape[i];
    strides[static_cast<std::size_t>(i)] = view.strides[i] * static_cast<Py_ssize_t>(itemsize(view.dtype));
  }
  PyObject* descr = reinterpret_cast<DescrFromType>(numpy_[kNumPyDescrFromType])(naming(view.dtype).numpy);
  if (descr == nullptr) nb::raise_python_error();
  PyObject* made = reinterpret_cast<NewFromDescr>(numpy_[kNumPyNewFromDescr])(  // takes descr
      numpy_[kNumPyArrayType], descr, view.shape.ndim(), sizes.data(), view.is_contiguous() ? nullptr : strides.data(),
      view.data, kNumPyCArray, nullptr);
  if (made == nullptr) nb::raise_python_error();
  nb::object array = nb::steal(made);
  PyObject* base = memory.capsule().inc_ref().ptr();  // SetBase takes it, also where it fails
  if (reinterpret_cast<SetBase>(numpy_[kNumPySetBase])(made, base) != 0) nb::raise_python_error();
  return array;
}

nb::object ArrayFactory::make_torch(const ArrayView& view, SharedMemory& memory) const {
  if (torch_ == nullptr) return from_dlpack_(nb::cast(Array{view, memory.owner()}));
  auto* managed = Export<DLManagedTensorVersioned>::make(view, memory.owner());
  void* tensor = nullptr;
  if (torch_->to_object(managed, &tensor) == 0) return nb::steal(static_cast<PyObject*>(tensor));
  managed->deleter(managed);
  nb::raise_python_error();
}

BorrowedArray borrow_array(nb::handle object, const std::string& what) {
  nb::ndarray<nb::ro> array;
  if (!nb::try_cast(object, array))
    throw ConfigError(what + " is a " + type_of(object) +
                      ", no array that can be borrowed: it needs DLPack or the buffer protocol, numbers in this "
                      "machine's byte order, and (torch) no gradient.");
  if (array.device_type() != static_cast<int>(DeviceType::kCPU))
    throw ConfigError(what + " lies on a device; datasets take arrays in the CPU's memory.");
  const std::optional<DType> dtype = from_dlpack(array.dtype());
  if (!dtype) throw ConfigError(what + " has a dtype that infeed does not know (complex, or 8-bit floats).");
  return {view_of(array, *dtype), keep_alive(std::move(array))};
}

void bind_array(nb::module_& module) {
  static PyType_Slot buffer_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
                                       {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
                                       {0, nullptr}};
  nb::class_<Array>(module, "Array", nb::type_slots(buffer_slots),
                    "An array in the loader's memory, for whatever takes DLPack or buffers. Writable; a view.")
      .def_prop_ro("shape", [](const Array& self) { return to_tuple(self.view.shape); })
      .def_prop_ro(
          "strides", [](const Array& self) { return to_tuple(self.view.strides); }, "In elements, as DLPack's.")
      .def_prop_ro("dtype", [](const Array& self) { return std::string(to_string(self.view.dtype)); })
      .def_prop_ro("nbytes", [](const Array& self) { return self.view.nbytes(); })
      .def(
          "__dlpack__",
          [](const Array& self, const nb::object& /*stream*/, const nb::object& max_version, const nb::object& device,
             const nb::object& copy) { return dlpack_of(self, max_version, device, copy); },
          nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
          nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none())
      .def("__dlpack_device__", [](const Array&) { return nb::make_tuple(static_cast<int>(DeviceType::kCPU), 0); })
      .def("__len__",
           [](const Array& self) {
             if (self.view.shape.empty()) throw nb::type_error("an array without dimensions has no length");
             return self.view.shape[0];
           })
      .def("__repr__", array_repr);
}

}  // namespace infeed::python
