#include <fmt/format.h>

#include "device/simulated_core.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::uintptr_t kHidden = std::uintptr_t{0x5A} << 56;
constexpr std::uintptr_t kAddress = (std::uintptr_t{1} << 56) - 1;

}  // namespace

void* SimulatedCore::given_address(void* memory) const noexcept {
  if (!options_.hidden_memory || memory == nullptr) return memory;
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(memory) | kHidden);
}

void* SimulatedCore::host_address(const void* given) noexcept {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(given) & kAddress);
}

DeviceMemoryInfo SimulatedCore::memory_info() {
  const Lock lock = lock_alive();
  return {.total_bytes = options_.memory_bytes, .free_bytes = options_.memory_bytes - allocations_.used_bytes()};
}

void* SimulatedCore::allocate(std::size_t bytes) {
  const Lock lock = lock_alive();
  if (bytes == 0) return nullptr;
  const std::size_t left = options_.memory_bytes - allocations_.used_bytes();
  if (++num_allocations_ == options_.faults.fail_allocation) {
    throw MemoryError(
        fmt::format("{}: allocation {} of {} bytes failed (injected fault)", label_, num_allocations_, bytes));
  }
  if (bytes > left) {
    throw MemoryError(fmt::format("{}: {} bytes of device memory asked, {} of {} left; free some or raise memory_bytes",
                                  label_, bytes, left, options_.memory_bytes));
  }
  return given_address(allocations_.allocate(label_, bytes));
}

void SimulatedCore::free(void* given) {
  if (given == nullptr) return;
  void* const ptr = host_address(given);
  Lock lock = lock_any();
  await_unused(lock, {static_cast<const std::byte*>(ptr), allocations_.size_of(label_, ptr)}, "freed");
  static_cast<void>(allocations_.size_of(label_, ptr));  // still there: another thread may have freed it meanwhile
  allocations_.free(ptr);
}

void SimulatedCore::register_host(void* ptr, std::size_t bytes) {
  const Lock lock = lock_alive();
  if (++num_registrations_ == options_.faults.fail_registration) {
    throw DeviceError(
        fmt::format("{}: registration {} of {} bytes failed (injected fault)", label_, num_registrations_, bytes));
  }
  const std::size_t limit = options_.registered_limit_bytes;
  const bool known = registrations_.contains(ptr, bytes);
  if (limit > 0 && !known && registrations_.total_bytes() + bytes > limit) {
    throw DeviceError(fmt::format("{}: cannot page-lock {} bytes: {} of at most {} are locked", label_, bytes,
                                  registrations_.total_bytes(), limit));
  }
  registrations_.add(label_, ptr, bytes);
}

void SimulatedCore::unregister_host(void* ptr) {
  Lock lock = lock_any();
  await_unused(lock, {static_cast<const std::byte*>(ptr), registrations_.size_of(label_, ptr)}, "unregistered");
  static_cast<void>(registrations_.size_of(label_, ptr));
  registrations_.remove(ptr);
}

bool SimulatedCore::is_registered(const void* ptr, std::size_t bytes) {
  const Lock lock = lock_alive();
  return registrations_.contains(ptr, bytes);
}

void SimulatedCore::check_device_range(const void* ptr, std::size_t bytes) const {
  if (allocations_.contains(ptr, bytes)) return;
  throw DeviceError(
      fmt::format("{}: {} bytes at {} do not lie in one live allocation of this device", label_, bytes, ptr));
}

}  // namespace infeed
