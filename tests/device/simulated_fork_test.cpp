#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "infeed/base/error.h"
#include "infeed/device/simulated.h"
#include "support/gate.h"

namespace infeed {
namespace {

int exit_code_of_child(const std::function<bool()>& check) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::alarm(60);
    ::_exit(check() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

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
  EXPECT_EQ(0, exit_code_of_child([&] {
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
  EXPECT_EQ(0, exit_code_of_child([&] {
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
