#pragma once
/// The bytes behind one or more tensors.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "infeed/base/array_view.h"
#include "infeed/base/export.h"
#include "infeed/train/tensor/allocator.h"

namespace infeed {

class DeviceMemory;

/// Bytes with one owner, shared by the tensor that made them and its views. Threads: reading from any; the version is
/// atomic, the bytes are the writer's care.
class INFEED_API Storage {
 public:
  /// A block of `allocator`, contents undefined.
  Storage(std::size_t bytes, Allocator& allocator);
  /// Of a device without memory (meta): data() is null.
  Storage(std::size_t bytes, DeviceId device) : data_(nullptr), bytes_(bytes), device_(device) {}
  /// A number of up to 8 bytes, in the object itself.
  explicit Storage(std::uint64_t number) noexcept
      : data_(reinterpret_cast<std::byte*>(&number_)), bytes_(sizeof number), number_(number) {}
  /// Foreign memory, valid while `owner` lives (a loader's batch, a mapped file).
  Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner);
  /// A block of a device's memory, and foreign memory of a device.
  Storage(std::size_t bytes, std::shared_ptr<DeviceMemory> memory);
  Storage(std::byte* data, std::size_t bytes, std::shared_ptr<void> owner, std::shared_ptr<DeviceMemory> memory);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  /// For the host. The one place where it could come to read a device's memory: there it throws NotImplementedError,
  /// naming `asker` (by default the calling function) and the device.
  [[nodiscard]] std::byte* data(const char* asker = __builtin_FUNCTION()) const {
    if (memory_ != nullptr) [[unlikely]]
      refuse(asker);
    return data_;
  }
  /// For the device's own kernels, and to compare.
  [[nodiscard]] std::byte* address() const noexcept { return data_; }
  /// Null for what the host may read, and for meta.
  [[nodiscard]] const std::shared_ptr<DeviceMemory>& memory() const noexcept { return memory_; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return bytes_; }

  /// Counts in-place writes through any view: backward() compares it with the count when a tensor was saved.
  [[nodiscard]] std::uint32_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

 private:
  [[noreturn]] void refuse(const char* asker) const;

  std::byte* data_;
  std::size_t bytes_;
  DeviceId device_;
  Allocator* allocator_ = nullptr;
  std::shared_ptr<void> owner_;
  std::shared_ptr<DeviceMemory> memory_;
  std::atomic<std::uint32_t> version_{0};
  std::uint64_t number_ = 0;
};

}  // namespace infeed
