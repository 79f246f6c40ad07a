#pragma once
/// Which device memory is allocated and which host memory is registered, with the rules that Device states.

#include <cstddef>
#include <map>
#include <string>

namespace infeed {

/// Live allocations, backed by host memory. Not thread-safe: the device locks.
class HostAllocations {
 public:
  HostAllocations() = default;
  ~HostAllocations();
  HostAllocations(const HostAllocations&) = delete;
  HostAllocations& operator=(const HostAllocations&) = delete;

  /// Throws MemoryError if the host has no memory.
  void* allocate(const std::string& device, std::size_t bytes);
  /// Bytes of the allocation that starts at `ptr`; throws DeviceError if there is none.
  [[nodiscard]] std::size_t size_of(const std::string& device, const void* ptr) const;
  /// `ptr` must be live.
  void free(void* ptr) noexcept;
  /// True if one allocation holds all of the range.
  [[nodiscard]] bool contains(const void* ptr, std::size_t bytes) const noexcept;
  [[nodiscard]] std::size_t used_bytes() const noexcept { return used_bytes_; }

 private:
  std::map<const std::byte*, std::size_t> sizes_;
  std::size_t used_bytes_ = 0;
};

/// Registered ranges with their counts. Not thread-safe: the device locks.
class HostRegistrations {
 public:
  /// True if the range is new, false if it was known and counts once more. Throws DeviceError on null, on 0 bytes and
  /// on overlap.
  bool add(const std::string& device, const void* ptr, std::size_t bytes);
  /// Bytes of the range that starts at `ptr`; throws DeviceError if there is none.
  [[nodiscard]] std::size_t size_of(const std::string& device, const void* ptr) const;
  /// Takes one count away; `ptr` must be known.
  void remove(const void* ptr) noexcept;
  [[nodiscard]] bool contains(const void* ptr, std::size_t bytes) const noexcept;
  [[nodiscard]] std::size_t total_bytes() const noexcept { return total_bytes_; }

 private:
  struct Range {
    std::size_t bytes = 0;
    std::size_t count = 0;
  };
  std::map<const std::byte*, Range> ranges_;
  std::size_t total_bytes_ = 0;
};

}  // namespace infeed
