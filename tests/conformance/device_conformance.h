#pragma once
/// What every Device owes, as one list. A test instantiates DeviceConformance with a factory for each implementation.

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <numeric>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/device/device.h"

namespace infeed {

struct DeviceFactory {
  std::string name;
  std::function<std::shared_ptr<Device>()> make;
  friend void PrintTo(const DeviceFactory& factory, std::ostream* out) { *out << factory.name; }
};

class DeviceConformance : public testing::TestWithParam<DeviceFactory> {
 protected:
  static constexpr std::size_t kBytes = 100'000;

  static std::vector<std::byte> pattern(std::size_t bytes, unsigned start) {
    std::vector<std::byte> values(bytes);
    for (std::size_t i = 0; i < bytes; ++i) values[i] = static_cast<std::byte>((i * 31 + start) & 0xff);
    return values;
  }
  void upload(DeviceStream& to, const DeviceBuffer& dst, const std::vector<std::byte>& src) {
    to.copy_async(dst.data(), src.data(), src.size(), CopyDirection::kHostToDevice);
  }
  std::vector<std::byte> download(DeviceStream& from, const DeviceBuffer& src) {
    std::vector<std::byte> values(src.size_bytes());
    from.copy_async(values.data(), src.data(), values.size(), CopyDirection::kDeviceToHost);
    from.synchronize();
    return values;
  }

  std::shared_ptr<Device> device = GetParam().make();
  std::unique_ptr<DeviceStream> stream = device->create_stream();
  std::unique_ptr<DeviceEvent> event = device->create_event();
};

TEST_P(DeviceConformance, HasAnIdANameAndMemory) {
  EXPECT_FALSE(to_string(device->id()).empty());
  EXPECT_FALSE(device->name().empty());
  const DeviceMemoryInfo info = device->memory_info();
  EXPECT_GT(info.free_bytes, 0U);
  EXPECT_GE(info.total_bytes, info.free_bytes);
}

TEST_P(DeviceConformance, AllocatesAlignedMemory) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{255}, kBytes}) {
    const DeviceBuffer buffer(device, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256, 0U) << bytes;
  }
}

TEST_P(DeviceConformance, AllocatesNothingForZeroBytes) {
  EXPECT_EQ(device->allocate(0), nullptr);
  EXPECT_NO_THROW(device->free(nullptr));
}

TEST_P(DeviceConformance, RefusesMoreMemoryThanThereIs) {
  EXPECT_THROW(static_cast<void>(device->allocate(std::size_t{1} << 56)), MemoryError);
}

TEST_P(DeviceConformance, RefusesToFreeWhatItDidNotAllocate) {
  int local = 0;
  EXPECT_THROW(device->free(&local), DeviceError);
  void* ptr = device->allocate(64);
  device->free(ptr);
  EXPECT_THROW(device->free(ptr), DeviceError);
}

TEST_P(DeviceConformance, CopiesThereAndBack) {
  const auto sent = pattern(kBytes, 1);
  const DeviceBuffer buffer(device, kBytes);
  upload(*stream, buffer, sent);
  EXPECT_EQ(download(*stream, buffer), sent);
}

TEST_P(DeviceConformance, CopiesWithinTheDevice) {
  const auto sent = pattern(kBytes, 2);
  const DeviceBuffer first(device, kBytes), second(device, kBytes);
  upload(*stream, first, sent);
  stream->copy_async(second.data(), first.data(), kBytes, CopyDirection::kDeviceToDevice);
  EXPECT_EQ(download(*stream, second), sent);
}

TEST_P(DeviceConformance, FillsMemory) {
  const DeviceBuffer buffer(device, kBytes);
  stream->fill_async(buffer.data(), 7, kBytes);
  EXPECT_EQ(download(*stream, buffer), std::vector(kBytes, std::byte{7}));
  EXPECT_NO_THROW(stream->fill_async(nullptr, 7, 0));
  EXPECT_THROW(stream->fill_async(nullptr, 7, 1), DeviceError);
}

TEST_P(DeviceConformance, CopiesRegisteredMemory) {
  auto sent = pattern(kBytes, 3);
  const HostRegistration locked(device, sent.data(), sent.size());
  const DeviceBuffer buffer(device, kBytes);
  upload(*stream, buffer, sent);
  EXPECT_EQ(download(*stream, buffer), sent);
}

TEST_P(DeviceConformance, CopiesNoBytesFromNowhere) {
  EXPECT_NO_THROW(stream->copy_async(nullptr, nullptr, 0, CopyDirection::kHostToDevice));
}

TEST_P(DeviceConformance, RefusesNullPointers) {
  const DeviceBuffer buffer(device, 64);
  EXPECT_THROW(stream->copy_async(buffer.data(), nullptr, 64, CopyDirection::kHostToDevice), DeviceError);
  EXPECT_THROW(stream->copy_async(nullptr, buffer.data(), 64, CopyDirection::kDeviceToHost), DeviceError);
}

TEST_P(DeviceConformance, KeepsTheOrderOfAStream) {
  std::vector<int> order;
  for (int i = 0; i < 50; ++i) stream->launch([&order, i] { order.push_back(i); });
  stream->synchronize();
  std::vector<int> expected(50);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
  EXPECT_TRUE(stream->query());
}

TEST_P(DeviceConformance, CountsAnEventThatWasNeverRecordedAsPassed) {
  EXPECT_TRUE(event->query());
  EXPECT_TRUE(event->synchronize(0));
  EXPECT_NO_THROW(stream->wait(*event));
}

TEST_P(DeviceConformance, PassesAnEventAfterTheWorkBeforeIt) {
  std::atomic<int> done = 0;
  for (int i = 0; i < 10; ++i) stream->launch([&done] { ++done; });
  stream->record(*event);
  event->synchronize();
  EXPECT_EQ(done, 10);
  EXPECT_TRUE(event->query());
}

TEST_P(DeviceConformance, RecordsAnEventAgain) {
  std::atomic<int> done = 0;
  for (int i = 1; i <= 3; ++i) {
    stream->launch([&done] { ++done; });
    stream->record(*event);
    EXPECT_TRUE(event->synchronize(10'000));
    EXPECT_EQ(done, i);
  }
}

TEST_P(DeviceConformance, OrdersStreamsByEvents) {
  const auto other = device->create_stream();
  auto sent = pattern(kBytes, 4);
  const HostRegistration locked(device, sent.data(), sent.size());
  const DeviceBuffer buffer(device, kBytes);
  upload(*stream, buffer, sent);
  stream->record(*event);
  other->wait(*event);
  EXPECT_EQ(download(*other, buffer), sent);
}

TEST_P(DeviceConformance, RecordsBehindTheWorkOfAllStreams) {
  const auto other = device->create_stream();
  std::atomic<int> done = 0;
  stream->launch([&done] { ++done; });
  other->launch([&done] { ++done; });
  device->record_all(*event);
  event->synchronize();
  EXPECT_EQ(done, 2);
}

TEST_P(DeviceConformance, MeasuresTimeBetweenEvents) {
  const auto start = device->create_event();
  EXPECT_THROW(static_cast<void>(event->elapsed_ms(*start)), DeviceError);
  stream->record(*start);
  stream->launch([] {});
  stream->record(*event);
  stream->synchronize();
  EXPECT_GE(event->elapsed_ms(*start), 0.0);
}

TEST_P(DeviceConformance, ReportsAFailureOnceThroughTheStream) {
  stream->launch([] { throw std::runtime_error("kernel broke"); });
  EXPECT_THROW(stream->synchronize(), DeviceError);
  EXPECT_NO_THROW(stream->synchronize());
}

TEST_P(DeviceConformance, ReportsAFailureThroughEventsRecordedBehindIt) {
  stream->launch([] { throw std::runtime_error("kernel broke"); });
  stream->record(*event);
  EXPECT_THROW(event->synchronize(), DeviceError);
  EXPECT_THROW(static_cast<void>(event->query()), DeviceError);
}

TEST_P(DeviceConformance, HandsAFailureToStreamsThatWaitOnIt) {
  const auto other = device->create_stream();
  stream->launch([] { throw std::runtime_error("kernel broke"); });
  stream->record(*event);
  other->wait(*event);
  EXPECT_THROW(other->synchronize(), DeviceError);
}

TEST_P(DeviceConformance, KnowsWhichHostMemoryIsRegistered) {
  auto memory = pattern(kBytes, 5);
  HostRegistration locked(device, memory.data(), memory.size());
  EXPECT_TRUE(device->is_registered(memory.data() + 10, 100));
  EXPECT_FALSE(device->is_registered(memory.data() + 10, kBytes));
  locked.reset();
  EXPECT_FALSE(device->is_registered(memory.data(), 1));
}

TEST_P(DeviceConformance, CountsRegistrationsOfTheSameRange) {
  auto memory = pattern(kBytes, 6);
  device->register_host(memory.data(), kBytes);
  device->register_host(memory.data(), kBytes);
  device->unregister_host(memory.data());
  EXPECT_TRUE(device->is_registered(memory.data(), kBytes));
  device->unregister_host(memory.data());
  EXPECT_FALSE(device->is_registered(memory.data(), kBytes));
  EXPECT_THROW(device->unregister_host(memory.data()), DeviceError);
}

TEST_P(DeviceConformance, RefusesRegistrationsThatOverlap) {
  constexpr std::size_t kPage = 4096;
  auto memory = pattern(4 * kPage, 7);
  std::byte* pages = memory.data() + (kPage - reinterpret_cast<std::uintptr_t>(memory.data()) % kPage) % kPage;
  const HostRegistration middle(device, pages + kPage, kPage);
  EXPECT_THROW(device->register_host(pages, kPage + 1), DeviceError);
  EXPECT_THROW(device->register_host(pages + 2 * kPage - 1, 10), DeviceError);
  EXPECT_THROW(device->register_host(pages, 3 * kPage), DeviceError);
  EXPECT_THROW(device->register_host(pages + kPage, 500), DeviceError);
  const HostRegistration before(device, pages, kPage), after(device, pages + 2 * kPage, 10);
}

TEST_P(DeviceConformance, RefusesToRegisterNothing) {
  std::byte one{};
  EXPECT_THROW(device->register_host(nullptr, 10), DeviceError);
  EXPECT_THROW(device->register_host(&one, 0), DeviceError);
}

TEST_P(DeviceConformance, SynchronizesAllStreams) {
  const auto other = device->create_stream();
  std::atomic<int> done = 0;
  stream->launch([&done] { ++done; });
  other->launch([&done] { ++done; });
  device->synchronize();
  EXPECT_EQ(done, 2);
}

TEST_P(DeviceConformance, FinishesTheWorkOfADestroyedStream) {
  std::atomic<int> done = 0;
  stream->launch([&done] { ++done; });
  stream->record(*event);
  stream.reset();
  event->synchronize();
  EXPECT_EQ(done, 1);
}

TEST_P(DeviceConformance, MovesBuffersAndRegistrations) {
  DeviceBuffer first(device, 64);
  const std::byte* data = first.data();
  DeviceBuffer second = std::move(first);
  first = DeviceBuffer(device, 32);
  second = std::move(second);
  EXPECT_EQ(second.data(), data);
  EXPECT_EQ(first.size_bytes(), 32U);
}

TEST_P(DeviceConformance, MayBeDestroyedBeforeWhatItMade) {
  stream->launch([] {});
  stream->record(*event);
  device.reset();
  stream.reset();
  event.reset();
}

}  // namespace infeed
