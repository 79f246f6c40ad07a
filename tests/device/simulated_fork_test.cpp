#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "infeed/base/error.h"
#include "infeed/device/simulated.h"
#include "support/child.h"
#include "support/gate.h"

namespace infeed {
namespace {

// A device with a copy queued, and a function running, at the moment of the fork.
class SimulatedForkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    buffer = DeviceBuffer(device, host.size());
    locked = HostRegistration(device, host.data(), host.size());
    gate.close(*stream);
    stream->copy_async(buffer.data(), host.data(), host.size(), CopyDirection::kHostToDevice);
    stream->record(*event);
  }
  std::vector<std::byte> host = std::vector<std::byte>(1 << 20);
  std::shared_ptr<SimulatedDevice> device = std::make_shared<SimulatedDevice>();
  DeviceBuffer buffer;
  HostRegistration locked;
  std::unique_ptr<DeviceStream> stream = device->create_stream();
  std::unique_ptr<DeviceEvent> event = device->create_event();
  testing::Gate gate;
};

TEST_F(SimulatedForkTest, IsInertInTheChild) {
  EXPECT_TRUE(testing::holds_in_child([&] {
    buffer.reset();
    locked.reset();
    stream.reset();
    event.reset();
    device.reset();
    return true;
  }));
  gate.open();
  EXPECT_NO_THROW(stream->synchronize());
}

TEST_F(SimulatedForkTest, ThrowsInTheChild) {
  EXPECT_TRUE(testing::holds_in_child([&] {
    try {
      stream->synchronize();
    } catch (const DeviceError& error) {
      return std::string(error.what()).find("belongs to process") != std::string::npos;
    }
    return false;
  }));
}

}  // namespace
}  // namespace infeed
