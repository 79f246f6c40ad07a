#pragma once
/// The word that engine, companion and bindings share: a borrowed pointer with a type and a shape.

#include <cstddef>
#include <cstdint>

#include "infeed/base/dtype.h"
#include "infeed/base/export.h"
#include "infeed/base/shape.h"

namespace infeed {

/// Numbers as in DLPack's DLDeviceType, but for kMeta: shapes and dtypes without memory (the companion's).
enum class DeviceType : std::int32_t { kCPU = 1, kCUDA = 2, kSimulated = 12, kMeta = 100 };

/// Where memory lies. `index` counts the devices of one type.
struct DeviceId {
  DeviceType type = DeviceType::kCPU;
  std::int32_t index = 0;
  friend bool operator==(const DeviceId&, const DeviceId&) = default;
};

/// Borrowed: valid as long as its owner (a Batch, a Row, the caller) says. Copies are cheap and refer to the same
/// bytes. `data` points at element [0, 0, ...]; strides are in elements.
struct INFEED_API ArrayView {
  std::byte* data = nullptr;
  DType dtype = DType::kUInt8;
  Shape shape;
  Strides strides;
  DeviceId device;

  ArrayView() = default;
  /// C-contiguous view.
  ArrayView(void* ptr, DType type, const Shape& sizes, DeviceId where = {})
      : data(static_cast<std::byte*>(ptr)),
        dtype(type),
        shape(sizes),
        strides(Strides::contiguous(sizes)),
        device(where) {}

  [[nodiscard]] std::int64_t numel() const { return shape.numel(); }
  /// Bytes of the elements, without gaps.
  [[nodiscard]] std::size_t nbytes() const { return static_cast<std::size_t>(numel()) * itemsize(dtype); }
  [[nodiscard]] bool is_contiguous() const noexcept;

  /// First element as T. Throws ConfigError if T is not this dtype.
  template <typename T>
  [[nodiscard]] T* as() const {
    check_dtype(dtype_of<T>);
    return reinterpret_cast<T*>(data);
  }

  /// View of item `i` along the first dimension; throws IndexError outside [0, shape[0]).
  [[nodiscard]] ArrayView at(std::int64_t i) const;

 private:
  void check_dtype(DType asked) const;
};

}  // namespace infeed
