#include "device/tables.h"

#include <fmt/format.h>

#include <new>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::align_val_t kAlignment{256};  // as cudaMalloc

const std::byte* as_bytes(const void* ptr) { return static_cast<const std::byte*>(ptr); }

// The entry of `ranges` that holds `at`, judged by its start only; end() if none starts at or before it.
template <typename Map>
auto last_at_or_before(const Map& ranges, const std::byte* at) {
  auto next = ranges.upper_bound(at);
  return next == ranges.begin() ? ranges.end() : --next;
}

}  // namespace

HostAllocations::~HostAllocations() {
  for (const auto& [ptr, bytes] : sizes_) ::operator delete(const_cast<std::byte*>(ptr), kAlignment);
}

void* HostAllocations::allocate(const std::string& device, std::size_t bytes) {
  void* ptr = ::operator new(bytes, kAlignment, std::nothrow);
  if (ptr == nullptr)
    throw MemoryError(fmt::format("{}: the host has no {} bytes left for device memory", device, bytes));
  sizes_.emplace(as_bytes(ptr), bytes);
  used_bytes_ += bytes;
  return ptr;
}

std::size_t HostAllocations::size_of(const std::string& device, const void* ptr) const {
  const auto found = sizes_.find(as_bytes(ptr));
  if (found != sizes_.end()) return found->second;
  throw DeviceError(fmt::format("{}: {} was not allocated here, or is already freed", device, ptr));
}

void HostAllocations::free(void* ptr) noexcept {
  const auto found = sizes_.find(as_bytes(ptr));
  used_bytes_ -= found->second;
  sizes_.erase(found);
  ::operator delete(ptr, kAlignment);
}

bool HostAllocations::contains(const void* ptr, std::size_t bytes) const noexcept {
  const auto holder = last_at_or_before(sizes_, as_bytes(ptr));
  return holder != sizes_.end() && as_bytes(ptr) + bytes <= holder->first + holder->second;
}

bool HostRegistrations::add(const std::string& device, const void* ptr, std::size_t bytes) {
  if (ptr == nullptr || bytes == 0) {
    throw DeviceError(fmt::format("{}: cannot register {} bytes at {}; give memory that exists", device, bytes, ptr));
  }
  const std::byte* begin = as_bytes(ptr);
  if (const auto same = ranges_.find(begin); same != ranges_.end() && same->second.bytes == bytes) {
    ++same->second.count;
    return false;
  }
  // Ranges do not overlap each other, so only the last one that starts before our end can overlap ours.
  const auto last = last_at_or_before(ranges_, begin + bytes - 1);
  if (last != ranges_.end() && last->first + last->second.bytes > begin) {
    throw DeviceError(fmt::format("{}: {} bytes at {} overlap the registered {} bytes at {}; unregister those first",
                                  device, bytes, ptr, last->second.bytes, static_cast<const void*>(last->first)));
  }
  ranges_.emplace(begin, Range{bytes, 1});
  total_bytes_ += bytes;
  return true;
}

std::size_t HostRegistrations::size_of(const std::string& device, const void* ptr) const {
  const auto found = ranges_.find(as_bytes(ptr));
  if (found != ranges_.end()) return found->second.bytes;
  throw DeviceError(fmt::format("{}: no registered range starts at {}", device, ptr));
}

void HostRegistrations::remove(const void* ptr) noexcept {
  const auto found = ranges_.find(as_bytes(ptr));
  if (--found->second.count > 0) return;
  total_bytes_ -= found->second.bytes;
  ranges_.erase(found);
}

bool HostRegistrations::contains(const void* ptr, std::size_t bytes) const noexcept {
  const auto holder = last_at_or_before(ranges_, as_bytes(ptr));
  return holder != ranges_.end() && as_bytes(ptr) + bytes <= holder->first + holder->second.bytes;
}

}  // namespace infeed
