#pragma once
/// One device as tensors see it: its stream, and its memory in a cache of blocks.

#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "infeed/device/device.h"
#include "infeed/train/tensor/allocator.h"

namespace infeed {

/// A freed block is given out again at once: its last user and its next one stand in the same stream. Threads: any.
class DeviceMemory final : public Allocator {
 public:
  /// That of `id`, opened at first use. Throws what open_device() throws.
  [[nodiscard]] static std::shared_ptr<DeviceMemory> of(DeviceId id);
  static void use(std::shared_ptr<Device> device);
  static void release(DeviceId id);

  explicit DeviceMemory(std::shared_ptr<Device> device);
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  [[nodiscard]] DeviceId id() const noexcept { return id_; }
  [[nodiscard]] Device& device() const noexcept { return *device_; }
  [[nodiscard]] DeviceStream& stream() const noexcept { return *stream_; }

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void deallocate(std::byte* block, std::size_t bytes) noexcept override;
  void empty_cache();
  [[nodiscard]] MemoryStats stats() const;

  /// Between the host and the device; the bytes are there when it returns.
  void copy(void* to, const void* from, std::size_t bytes, CopyDirection direction) const;

 private:
  [[nodiscard]] std::byte* take(std::size_t block_bytes);
  void empty_cache_locked() noexcept;

  const DeviceId id_;
  const std::shared_ptr<Device> device_;
  const std::unique_ptr<DeviceStream> stream_;
  mutable std::mutex mutex_;                                       // all below
  std::unordered_map<std::size_t, std::vector<std::byte*>> free_;  // by size of block
  MemoryStats stats_;
};

}  // namespace infeed
