#include "infeed/device/simulated.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "infeed/base/error.h"
#include "support/gate.h"

namespace infeed {
namespace {

using testing::Gate;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr std::size_t kMiB = std::size_t{1} << 20;

double milliseconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

// One registered host buffer and one device buffer of 4 MiB.
class SimulatedDeviceTest : public ::testing::Test {
 protected:
  void make(const SimulatedOptions& options) {
    device = std::make_shared<SimulatedDevice>(options);
    locked = HostRegistration(device, host.data(), host.size());
    buffer = DeviceBuffer(device, host.size());
    stream = device->create_stream();
    event = device->create_event();
  }
  void upload(DeviceStream& to) {
    to.copy_async(buffer.data(), host.data(), host.size(), CopyDirection::kHostToDevice);
  }
  void download(DeviceStream& from) {
    from.copy_async(host.data(), buffer.data(), host.size(), CopyDirection::kDeviceToHost);
  }
  std::span<const std::byte> on_device() const { return {buffer.data(), buffer.size_bytes()}; }

  std::vector<std::byte> host = std::vector<std::byte>(4 * kMiB, std::byte{1});
  std::shared_ptr<SimulatedDevice> device;
  HostRegistration locked;
  DeviceBuffer buffer;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<DeviceEvent> event;
  Gate gate;  // last: open before anything waits for work behind it
};

TEST_F(SimulatedDeviceTest, TakesAtLeastTheTimeOfBandwidthAndLatency) {
  make({.bandwidth_bytes_per_s = 400e6, .latency_us = 1000});
  const double expected_ms = 1.0 + 4.0 * kMiB / 400e6 * 1e3;
  EXPECT_GE(milliseconds([&] {
              upload(*stream);
              stream->synchronize();
            }),
            expected_ms);
}

TEST_F(SimulatedDeviceTest, ReportsTheTimeOfTheModelThroughEvents) {
  make({.bandwidth_bytes_per_s = 400e6, .latency_us = 0});
  const auto start = device->create_event();
  stream->record(*start);
  for (int i = 0; i < 3; ++i) upload(*stream);
  stream->record(*event);
  stream->synchronize();
  EXPECT_GE(event->elapsed_ms(*start), 3 * 4.0 * kMiB / 400e6 * 1e3);
  EXPECT_GE(device->busy_seconds(CopyDirection::kHostToDevice), 3 * 4.0 * kMiB / 400e6);
}

TEST_F(SimulatedDeviceTest, ReturnsAtOnceFromACopyOfRegisteredMemory) {
  make({});
  gate.close(*stream);
  upload(*stream);
  EXPECT_FALSE(stream->query());
  stream->record(*event);
  EXPECT_FALSE(event->query());
  EXPECT_FALSE(event->synchronize(1));
}

TEST_F(SimulatedDeviceTest, BlocksInACopyOfUnregisteredMemoryAndTakesLonger) {
  make({.bandwidth_bytes_per_s = 400e6, .latency_us = 0, .unregistered_factor = 2});
  locked.reset();
  EXPECT_GE(milliseconds([&] { upload(*stream); }), 2 * 4.0 * kMiB / 400e6 * 1e3);
  EXPECT_TRUE(stream->query());
}

TEST_F(SimulatedDeviceTest, CopiesBothWaysAtTheSameTimeAsItComputes) {
  make({.bandwidth_bytes_per_s = 0});
  gate.close(*stream);
  const auto up = device->create_stream();
  upload(*up);
  up->synchronize();  // would hang if the compute engine held the copy engine
  EXPECT_FALSE(stream->query());
  gate.open();
  stream->synchronize();
}

// A look at memory that the device may be writing. A race detector is not asked.
#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
std::byte
peek(const void* at) {
  return *static_cast<const volatile std::byte*>(at);
}

TEST_F(SimulatedDeviceTest, MovesHalfOfTheBytesOnlyAtTheEndOfTheCopy) {
  auto alone = std::make_unique<SimulatedDevice>(SimulatedOptions{.latency_us = 3600e6});  // it does not end today
  alone->register_host(host.data(), host.size());
  auto* memory = static_cast<std::byte*>(alone->allocate(host.size()));
  std::memset(memory, 0, host.size());
  const auto queue = alone->create_stream();
  queue->copy_async(memory, host.data(), host.size(), CopyDirection::kHostToDevice);
  testing::wait_until([&] { return peek(memory) == std::byte{1}; });
  EXPECT_EQ(peek(memory + host.size() - 1), std::byte{0});
}

TEST_F(SimulatedDeviceTest, AccountsForItsMemory) {
  make({.memory_bytes = 6 * kMiB});
  EXPECT_EQ(device->memory_info().free_bytes, 2 * kMiB);
  EXPECT_THAT([&] { static_cast<void>(device->allocate(3 * kMiB)); },
              ThrowsMessage<MemoryError>(HasSubstr("3145728 bytes of device memory asked, 2097152 of 6291456 left")));
  buffer.reset();
  EXPECT_EQ(device->memory_info().free_bytes, 6 * kMiB);
}

TEST_F(SimulatedDeviceTest, LimitsRegisteredMemory) {
  make({.registered_limit_bytes = 5 * kMiB});
  std::vector<std::byte> more(2 * kMiB);
  EXPECT_THROW(device->register_host(more.data(), more.size()), DeviceError);
  EXPECT_NO_THROW(device->register_host(more.data(), kMiB));
}

TEST_F(SimulatedDeviceTest, RefusesCopiesOutsideItsAllocations) {
  make({});
  EXPECT_THAT([&] { stream->copy_async(buffer.data() + 1, host.data(), host.size(), CopyDirection::kHostToDevice); },
              ThrowsMessage<DeviceError>(HasSubstr("do not lie in one live allocation")));
  const std::byte* freed = buffer.data();
  buffer.reset();
  EXPECT_THROW(stream->copy_async(host.data(), freed, 1, CopyDirection::kDeviceToHost), DeviceError);
}

TEST_F(SimulatedDeviceTest, RefusesEventsAndStreamsOfAnotherDevice) {
  make({});
  SimulatedDevice other({.index = 1});
  EXPECT_THROW(stream->record(*other.create_event()), DeviceError);
  EXPECT_THROW(other.compute(*stream, {}), DeviceError);
}

TEST_F(SimulatedDeviceTest, FreesMemoryOnlyAfterTheWorkThatUsesIt) {
  make({.bandwidth_bytes_per_s = 400e6});
  upload(*stream);
  buffer.reset();
  EXPECT_TRUE(stream->query());
}

TEST_F(SimulatedDeviceTest, FailsTheNthCopyOnly) {
  make({.faults = {.fail_copy = 2}});
  upload(*stream);
  EXPECT_NO_THROW(stream->synchronize());
  upload(*stream);
  EXPECT_THAT([&] { stream->synchronize(); }, ThrowsMessage<DeviceError>(HasSubstr("copy 2 of 4194304 bytes failed")));
  upload(*stream);
  EXPECT_NO_THROW(stream->synchronize());
}

TEST_F(SimulatedDeviceTest, ThrowsTheFailureOfABlockingCopyAtOnce) {
  make({.faults = {.fail_copy = 1}});
  locked.reset();
  EXPECT_THROW(upload(*stream), DeviceError);
  EXPECT_NO_THROW(stream->synchronize());
}

TEST_F(SimulatedDeviceTest, IsLostAfterAStickyFault) {
  make({.faults = {.fail_copy = 1, .sticky = true}});
  upload(*stream);
  stream->record(*event);
  EXPECT_THROW(stream->synchronize(), DeviceError);
  EXPECT_THROW(stream->synchronize(), DeviceError);
  EXPECT_THROW(static_cast<void>(event->query()), DeviceError);
  EXPECT_THROW(static_cast<void>(device->allocate(1)), DeviceError);
  EXPECT_THROW(device->synchronize(), DeviceError);
}

TEST_F(SimulatedDeviceTest, FailsAllocationsAndRegistrationsOnRequest) {
  make({.faults = {.fail_allocation = 2, .fail_registration = 2}});
  EXPECT_THROW(DeviceBuffer(device, 10), MemoryError);
  EXPECT_THROW(HostRegistration(device, this, 1), DeviceError);
  EXPECT_NO_THROW(DeviceBuffer(device, 10));
}

TEST_F(SimulatedDeviceTest, FindsWorkOfTwoStreamsThatNoEventOrders) {
  make({.check_races = true});
  const auto other = device->create_stream();
  gate.close(*stream);
  upload(*stream);
  EXPECT_THAT([&] { device->compute(*other, {.reads = {on_device()}}); },
              ThrowsMessage<DeviceError>(HasSubstr("let it wait for an event")));
  stream->record(*event);
  other->wait(*event);
  EXPECT_NO_THROW(device->compute(*other, {.reads = {on_device()}}));
}

TEST_F(SimulatedDeviceTest, FindsOrderThroughAChainOfEvents) {
  make({.check_races = true});
  const auto second = device->create_stream(), third = device->create_stream();
  const auto passed_on = device->create_event();
  gate.close(*stream);
  upload(*stream);
  stream->record(*event);
  second->wait(*event);
  second->record(*passed_on);
  third->wait(*passed_on);
  EXPECT_NO_THROW(download(*third));
}

TEST_F(SimulatedDeviceTest, FindsMemoryThatIsFreedOrTouchedWhileInUse) {
  make({.check_races = true});
  gate.close(*stream);
  upload(*stream);
  EXPECT_THROW(device->free(buffer.data()), DeviceError);
  EXPECT_THROW(device->unregister_host(host.data()), DeviceError);
  EXPECT_THROW(device->check_host_access(host, true), DeviceError);
  EXPECT_NO_THROW(device->check_host_access(host, false));
  gate.open();
  stream->synchronize();
  EXPECT_NO_THROW(device->check_host_access(host, true));
}

TEST_F(SimulatedDeviceTest, EndsAtOnceWithWorkQueued) {
  auto alone = std::make_unique<SimulatedDevice>(SimulatedOptions{.latency_us = 3600e6});
  alone->register_host(host.data(), host.size());
  void* memory = alone->allocate(host.size());
  const auto queue = alone->create_stream();
  for (int i = 0; i < 10; ++i) queue->copy_async(memory, host.data(), host.size(), CopyDirection::kHostToDevice);
  alone.reset();
  EXPECT_THROW(static_cast<void>(queue->query()), DeviceError);
}

TEST_F(SimulatedDeviceTest, WakesWhoeverWaitsWhenItEnds) {
  auto alone = std::make_unique<SimulatedDevice>();
  const auto slow = alone->create_stream();
  alone->compute(*slow, {.duration_us = 3600e6});
  const std::jthread ender([&] { alone.reset(); });
  EXPECT_THROW(slow->synchronize(), DeviceError);
}

TEST_F(SimulatedDeviceTest, DestroysWhatAFunctionOwnedOutsideItsLock) {
  make({});
  auto owned = std::make_shared<DeviceBuffer>(device, 64);
  stream->launch([owned = std::move(owned)] {});
  stream->synchronize();
  device->synchronize();
}

TEST_F(SimulatedDeviceTest, MayBeDroppedLastByALaunchedFunction) {
  auto alone = std::make_shared<SimulatedDevice>();
  const auto queue = alone->create_stream();
  std::promise<void> gone;
  queue->launch([owner = std::move(alone), &gone]() mutable {
    owner.reset();
    gone.set_value();
  });
  gone.get_future().wait();
  EXPECT_THROW(queue->synchronize(), DeviceError);
}

TEST_F(SimulatedDeviceTest, ServesManyThreads) {
  make({.bandwidth_bytes_per_s = 0, .latency_us = 0});
  std::atomic<int> done = 0;
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const auto mine = device->create_stream();
      for (int i = 0; i < 50; ++i) mine->launch([&done] { ++done; });
      mine->synchronize();
    });
  }
  threads.clear();
  EXPECT_EQ(done, 200);
}

TEST(SimulatedOptionsTest, AreCheckedByName) {
  EXPECT_THAT([] { SimulatedDevice({.bandwidth_bytes_per_s = -1}); },
              ThrowsMessage<ConfigError>(HasSubstr("bandwidth_bytes_per_s is -1")));
  EXPECT_THROW(SimulatedDevice({.unregistered_factor = 0.5}), ConfigError);
  EXPECT_THROW(SimulatedDevice({.memory_bytes = 0}), ConfigError);
}

}  // namespace
}  // namespace infeed
