#include "infeed/device/host.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "device/tables.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kName = "cpu:0";

struct HostMark {
  std::optional<Clock::time_point> at;
  std::string error;
};

class HostEvent final : public DeviceEvent {
 public:
  void set(HostMark mark) {
    const std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
  }
  [[nodiscard]] HostMark mark() const {
    const std::lock_guard lock(mutex_);
    return mark_;
  }

  [[nodiscard]] bool query() const override {
    if (const HostMark now = mark(); !now.error.empty()) throw DeviceError(now.error);
    return true;
  }
  using DeviceEvent::synchronize;
  [[nodiscard]] bool synchronize(std::int64_t) const override { return query(); }
  [[nodiscard]] double elapsed_ms(const DeviceEvent& start) const override;

 private:
  mutable std::mutex mutex_;
  HostMark mark_;
};

template <typename Event>
auto& host_event(Event& event) {
  using Ours = std::conditional_t<std::is_const_v<Event>, const HostEvent, HostEvent>;
  if (auto* ours = dynamic_cast<Ours*>(&event)) return *ours;
  throw DeviceError(fmt::format("{}: the event belongs to another device", kName));
}

double HostEvent::elapsed_ms(const DeviceEvent& start) const {
  const auto from = host_event(start).mark().at;
  const auto to = mark().at;
  if (!from || !to) throw DeviceError(fmt::format("{}: elapsed_ms needs two recorded events", kName));
  return std::chrono::duration<double, std::milli>(*to - *from).count();
}

class HostStream final : public DeviceStream {
 public:
  void copy_async(void* dst, const void* src, std::size_t bytes, CopyDirection) override {
    if (bytes == 0) return;
    if (dst == nullptr || src == nullptr) {
      throw DeviceError(fmt::format("{}: cannot copy {} bytes from {} to {}", kName, bytes, src, dst));
    }
    const std::lock_guard lock(mutex_);
    std::memcpy(dst, src, bytes);
  }

  void fill_async(void* dst, std::uint8_t value, std::size_t bytes) override {
    if (bytes == 0) return;
    if (dst == nullptr) throw DeviceError(fmt::format("{}: cannot fill {} bytes at {}", kName, bytes, dst));
    const std::lock_guard lock(mutex_);
    std::memset(dst, value, bytes);
  }

  void record(DeviceEvent& event) override {
    const std::lock_guard lock(mutex_);
    host_event(event).set({Clock::now(), error_});
  }

  void wait(const DeviceEvent& event) override {
    const std::string error = host_event(event).mark().error;
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = error;
  }

  void launch(std::function<void()> work) override {
    const std::lock_guard lock(mutex_);
    try {
      work();
    } catch (const std::exception& error) {
      if (error_.empty()) error_ = fmt::format("{}: a launched function failed: {}", kName, error.what());
    }
  }

  [[nodiscard]] bool query() const override { return true; }

  void synchronize() override {
    const std::lock_guard lock(mutex_);
    if (const std::string error = std::exchange(error_, {}); !error.empty()) throw DeviceError(error);
  }

 private:
  std::mutex mutex_;  // keeps the calls of several threads in one order
  std::string error_;
};

}  // namespace

HostDevice::HostDevice()
    : allocations_(std::make_unique<HostAllocations>()), registrations_(std::make_unique<HostRegistrations>()) {}

HostDevice::~HostDevice() = default;

DeviceMemoryInfo HostDevice::memory_info() const {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return {.total_bytes = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page,
          .free_bytes = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * page};
}

void* HostDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  const std::size_t total = memory_info().total_bytes;  // the kernel may promise more than it has
  if (bytes > total) {
    throw MemoryError(fmt::format("{}: {} bytes asked, the machine has {}; ask for less", kName, bytes, total));
  }
  const std::lock_guard lock(mutex_);
  return allocations_->allocate(kName, bytes);
}

void HostDevice::free(void* ptr) {
  if (ptr == nullptr) return;
  const std::lock_guard lock(mutex_);
  static_cast<void>(allocations_->size_of(kName, ptr));
  allocations_->free(ptr);
}

void HostDevice::register_host(void* ptr, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  registrations_->add(kName, ptr, bytes);
}

void HostDevice::unregister_host(void* ptr) {
  const std::lock_guard lock(mutex_);
  static_cast<void>(registrations_->size_of(kName, ptr));
  registrations_->remove(ptr);
}

bool HostDevice::is_registered(const void* ptr, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return registrations_->contains(ptr, bytes);
}

std::unique_ptr<DeviceStream> HostDevice::create_stream() { return std::make_unique<HostStream>(); }
std::unique_ptr<DeviceEvent> HostDevice::create_event() { return std::make_unique<HostEvent>(); }

void HostDevice::record_all(DeviceEvent& event) { host_event(event).set({Clock::now(), {}}); }

}  // namespace infeed
