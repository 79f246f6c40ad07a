#pragma once
/// What tensors do on every device that has kernels: device_list.cpp, a part of each program that has such a device.

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "infeed/device/device.h"
#include "infeed/train/tensor/device.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {

/// The program's device; the same one as long as somebody holds it.
[[nodiscard]] std::shared_ptr<Device> make_device();

class DeviceTensorTest : public ::testing::Test {
 protected:
  DeviceTensorTest() { use_device(device); }
  ~DeviceTensorTest() override {
    EXPECT_EQ(device_memory_stats(id).in_use_bytes, 0U) << "a tensor was left on the device";
    release_device(id);
  }

  [[nodiscard]] Tensor there(const Tensor& x) const { return x.to(id); }
  [[nodiscard]] std::string name() const { return device_name(id); }

  const std::shared_ptr<Device> device = make_device();
  const DeviceId id = device->id();
};

}  // namespace infeed
