#pragma once
/// The part of DLPack 1.x that crosses between libraries: managed tensors, and the table of C functions that a
/// framework's tensor type may offer as `__dlpack_c_exchange_api__`.

#include <nanobind/ndarray.h>

#include <cstdint>

namespace infeed::python {

inline constexpr std::uint32_t kDLPackMajor = 1, kDLPackMinor = 1;

/// In a capsule "dltensor_versioned"; who takes it renames the capsule to "used_dltensor_versioned" and calls deleter.
struct DLManagedTensorVersioned {
  std::uint32_t major = kDLPackMajor, minor = kDLPackMinor;
  void* manager = nullptr;
  void (*deleter)(DLManagedTensorVersioned*) = nullptr;
  std::uint64_t flags = 0;  ///< bit 0: read-only; bit 1: a copy
  nanobind::dlpack::dltensor tensor;
};
inline constexpr std::uint64_t kDLPackReadOnly = 1, kDLPackCopied = 2;

/// Before 1.0, in a capsule "dltensor".
struct DLManagedTensor {
  nanobind::dlpack::dltensor tensor;
  void* manager = nullptr;
  void (*deleter)(DLManagedTensor*) = nullptr;
};

/// In a capsule "dlpack_exchange_api", which lives as long as the framework. Functions return 0, or -1 with a Python
/// error set.
struct DLPackExchangeApi {
  std::uint32_t major, minor;
  const DLPackExchangeApi* previous;
  void* allocate;
  int (*from_object)(void* object, DLManagedTensorVersioned** out);
  int (*to_object)(DLManagedTensorVersioned* tensor, void** object);  ///< takes `tensor` where it succeeds
  int (*borrow)(void* object, nanobind::dlpack::dltensor* out);
  int (*current_stream)(std::int32_t device_type, std::int32_t device, void** out);
};

}  // namespace infeed::python
