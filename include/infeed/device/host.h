#pragma once
/// The CPU as a device: memory is host memory, copies are done at once by the caller.

#include <memory>
#include <mutex>
#include <string>

#include "infeed/device/device.h"

namespace infeed {

class HostAllocations;
class HostRegistrations;

/// Device memory is ordinary memory; streams do their work inside the call that queues it, so every event has passed
/// when it is recorded. Registration locks nothing but keeps the rules, so that code written here holds elsewhere.
/// Any host pointer may stand for device memory. Threads, fork and errors: as Device says; a forked child may go on
/// using it, since nothing here has threads.
class INFEED_API HostDevice final : public Device {
 public:
  HostDevice();
  ~HostDevice() override;
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;

  [[nodiscard]] DeviceId id() const noexcept override { return {}; }
  [[nodiscard]] std::string name() const override { return "host"; }
  /// The machine's memory; free_bytes leaves page cache out and is a lower bound.
  [[nodiscard]] DeviceMemoryInfo memory_info() const override;

  [[nodiscard]] void* allocate(std::size_t bytes) override;
  void free(void* ptr) override;
  void register_host(void* ptr, std::size_t bytes) override;
  void unregister_host(void* ptr) override;
  [[nodiscard]] bool is_registered(const void* ptr, std::size_t bytes) const override;

  [[nodiscard]] std::unique_ptr<DeviceStream> create_stream() override;
  [[nodiscard]] std::unique_ptr<DeviceEvent> create_event() override;
  void record_all(DeviceEvent& event) override;
  void synchronize() override {}  // each call has done its work when it returns

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<HostAllocations> allocations_;
  std::unique_ptr<HostRegistrations> registrations_;
};

}  // namespace infeed
