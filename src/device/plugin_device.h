#pragma once
/// A device behind a plugin's table, as one of ours.

#include <memory>
#include <string>

#include "device/plugin_core.h"
#include "infeed/device/device.h"

namespace infeed {

class PluginDevice final : public Device {
 public:
  explicit PluginDevice(std::shared_ptr<PluginCore> core) : core_(std::move(core)) {}
  ~PluginDevice() override;
  PluginDevice(const PluginDevice&) = delete;
  PluginDevice& operator=(const PluginDevice&) = delete;

  [[nodiscard]] DeviceId id() const noexcept override { return core_->id(); }
  [[nodiscard]] std::string name() const override;
  [[nodiscard]] DeviceMemoryInfo memory_info() const override;
  [[nodiscard]] void* allocate(std::size_t bytes) override { return core_->allocate(bytes); }
  void free(void* ptr) override { core_->free(ptr); }
  void register_host(void* ptr, std::size_t bytes) override { core_->register_host(ptr, bytes); }
  void unregister_host(void* ptr) override { core_->unregister_host(ptr); }
  [[nodiscard]] bool is_registered(const void* ptr, std::size_t bytes) const override;
  [[nodiscard]] std::unique_ptr<DeviceStream> create_stream() override;
  [[nodiscard]] std::unique_ptr<DeviceStream> borrow_stream(void* native_handle) override;
  [[nodiscard]] std::unique_ptr<DeviceEvent> create_event() override;
  void record_all(DeviceEvent& event) override;
  void synchronize() override;
  [[nodiscard]] DeviceKernels kernels() const override;
  void push_range(const char* name) noexcept override;
  void pop_range() noexcept override;

 private:
  std::shared_ptr<PluginCore> core_;
};

}  // namespace infeed
