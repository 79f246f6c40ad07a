#include "infeed/device/device.h"

#include <fmt/format.h>

#include "infeed/base/error.h"

namespace infeed {

DeviceEvent::~DeviceEvent() = default;
DeviceStream::~DeviceStream() = default;
Device::~Device() = default;

void* DeviceStream::native_handle() const noexcept { return nullptr; }

std::unique_ptr<DeviceStream> Device::borrow_stream(void*) {
  throw DeviceError(fmt::format("{} has no streams of a driver; use create_stream()", to_string(id())));
}

DeviceKernels Device::kernels() const { return {}; }
void Device::push_range(const char*) noexcept {}
void Device::pop_range() noexcept {}

std::string to_string(DeviceId id) {
  switch (id.type) {
    case DeviceType::kCPU: return fmt::format("cpu:{}", id.index);
    case DeviceType::kCUDA: return fmt::format("cuda:{}", id.index);
    case DeviceType::kMeta: return "meta";
    case DeviceType::kSimulated: return fmt::format("simulated:{}", id.index);
  }
  return fmt::format("device type {}:{}", static_cast<int>(id.type), id.index);
}

DeviceBuffer::DeviceBuffer(std::shared_ptr<Device> device, std::size_t bytes)
    : device_(std::move(device)), data_(static_cast<std::byte*>(device_->allocate(bytes))), bytes_(bytes) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  DeviceBuffer(std::move(other)).swap(*this);
  return *this;
}

void DeviceBuffer::reset() noexcept {
  if (device_) {
    try {
      device_->free(data_);
    } catch (const Error&) {  // intentional: a lost device has lost the memory too
    }
  }
  device_.reset();
  data_ = nullptr;
  bytes_ = 0;
}

void DeviceBuffer::swap(DeviceBuffer& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

HostRegistration::HostRegistration(std::shared_ptr<Device> device, void* ptr, std::size_t bytes)
    : device_(std::move(device)), data_(static_cast<std::byte*>(ptr)), bytes_(bytes) {
  device_->register_host(ptr, bytes);
}

HostRegistration& HostRegistration::operator=(HostRegistration&& other) noexcept {
  HostRegistration(std::move(other)).swap(*this);
  return *this;
}

void HostRegistration::reset() noexcept {
  if (device_) {
    try {
      device_->unregister_host(data_);
    } catch (const Error&) {  // intentional: a lost device has dropped the lock
    }
  }
  device_.reset();
  data_ = nullptr;
  bytes_ = 0;
}

void HostRegistration::swap(HostRegistration& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

}  // namespace infeed
