// The plugin, loaded as ever, with the stand-in where it looks for libcudart.so.13.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <future>

#include "conformance/device_conformance.h"
#include "fake_cudart/fake_cudart.h"
#include "infeed/device/open.h"
#include "support/gate.h"

namespace infeed {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Gate;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance,
                         ::testing::Values(DeviceFactory{"cuda", [] { return open_device("cuda:0"); }},
                                           DeviceFactory{"second", [] { return open_device("cuda:1"); }}),
                         [](const auto& one) { return one.param.name; });

// 1 MiB on each side, page-locked. Whatever a test does, the stand-in has nothing to say in the end.
class CudaDeviceTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 20;

  void open(const std::string& name = "cuda:0") {
    device = open_device(name);
    locked = HostRegistration(device, host.data(), host.size());
    buffer = DeviceBuffer(device, host.size());
    stream = device->create_stream();
    event = device->create_event();
  }
  void upload(DeviceStream& to) {
    to.copy_async(buffer.data(), host.data(), host.size(), CopyDirection::kHostToDevice);
  }
  void give_back() {
    gate.open();
    event.reset();
    stream.reset();
    buffer.reset();
    locked.reset();
    device.reset();
  }
  void TearDown() override {
    give_back();
    EXPECT_THAT(fake::leaks(), IsEmpty());
    EXPECT_THAT(fake::take_complaints(), IsEmpty());
    fake::reset();
  }

  std::vector<std::byte> host = std::vector<std::byte>(kBytes, std::byte{1});
  std::shared_ptr<Device> device;
  HostRegistration locked;
  DeviceBuffer buffer;
  std::unique_ptr<DeviceStream> stream;
  std::unique_ptr<DeviceEvent> event;
  Gate gate;
};

TEST_F(CudaDeviceTest, IsTheSameWhileSomebodyHoldsIt) {
  open();
  EXPECT_EQ(open_device("cuda"), device);
  EXPECT_NE(open_device("cuda:1"), device);
  EXPECT_EQ(device->name(), "stand-in accelerator");
  EXPECT_EQ(device->id(), (DeviceId{DeviceType::kCUDA, 0}));
}

TEST_F(CudaDeviceTest, CopiesPageLockedMemoryWithoutWaiting) {
  open();
  gate.close(*stream);
  upload(*stream);
  stream->record(*event);
  EXPECT_FALSE(stream->query());
  EXPECT_FALSE(event->query());
  EXPECT_FALSE(event->synchronize(1));
}

TEST_F(CudaDeviceTest, WaitsForCopiesOfOtherMemory) {
  open();
  locked.reset();
  upload(*stream);
  EXPECT_TRUE(stream->query());
  EXPECT_EQ(fake::calls("cudaStreamSynchronize"), 1U);
}

TEST_F(CudaDeviceTest, LeavesTheCallersDeviceAlone) {
  open("cuda:1");
  upload(*stream);
  stream->synchronize();
  int current = -1;
  ASSERT_EQ(cudaGetDevice(&current), cudaSuccess);
  EXPECT_EQ(current, 0);
  EXPECT_EQ(fake::calls("cudaSetDevice"), 0U);
}

TEST_F(CudaDeviceTest, LeavesNoErrorBehindForOthersToFind) {
  open();
  gate.close(*stream);
  stream->record(*event);
  EXPECT_FALSE(event->query());
  EXPECT_THROW(static_cast<void>(device->allocate(std::size_t{1} << 50)), MemoryError);
  EXPECT_EQ(cudaPeekAtLastError(), cudaSuccess);
}

TEST_F(CudaDeviceTest, FreesAndUnlocksOnlyAfterTheWorkThatUsesIt) {
  open();
  gate.close(*stream);
  upload(*stream);
  auto ended = std::async(std::launch::async, [this] {
    buffer.reset();
    locked.reset();
  });
  gate.open();
  ended.get();  // the stand-in would have complained
}

TEST_F(CudaDeviceTest, WorksInAStreamOfSomebodyElse) {
  open();
  cudaStream_t theirs = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking), cudaSuccess);
  for (void* handle : {static_cast<void*>(theirs), static_cast<void*>(nullptr)}) {
    const auto borrowed = device->borrow_stream(handle);
    EXPECT_EQ(borrowed->native_handle(), handle);
    upload(*borrowed);
    borrowed->record(*event);
    event->synchronize();
  }
  EXPECT_EQ(cudaStreamDestroy(theirs), cudaSuccess);
}

TEST_F(CudaDeviceTest, MarksTheWorkOfStreamsItNeverHeardOf) {
  open();
  cudaStream_t theirs = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&theirs, cudaStreamNonBlocking), cudaSuccess);
  gate.close(*device->borrow_stream(theirs));
  device->record_all(*event);
  EXPECT_FALSE(event->query());
  gate.open();
  event->synchronize();
  EXPECT_EQ(cudaStreamDestroy(theirs), cudaSuccess);
}

TEST_F(CudaDeviceTest, DestroysWhatAFunctionOwnedWhereTheDeviceMayBeCalled) {
  open();
  auto owned = std::make_shared<DeviceBuffer>(device, 64);
  stream->launch([owned = std::move(owned)] {});
  stream->synchronize();
  EXPECT_EQ(fake::calls("cudaFree"), 1U);
}

// --- failures ---

TEST_F(CudaDeviceTest, NamesTheCallThatFailed) {
  open();
  fake::fail({.function = "cudaEventRecord", .error = cudaErrorInvalidValue});
  EXPECT_THAT([&] { stream->record(*event); },
              ThrowsMessage<DeviceError>(AllOf(HasSubstr("cuda:0: recording an event failed: cudaEventRecord: "),
                                               HasSubstr("(cudaErrorInvalidValue, 1)"))));
  EXPECT_NO_THROW(stream->record(*event));
}

TEST_F(CudaDeviceTest, TellsWhatMemoryWasAskedAndLeft) {
  fake::reset({.memory_bytes = 4 << 20});
  open();
  EXPECT_THAT([&] { static_cast<void>(device->allocate(8 << 20)); },
              ThrowsMessage<MemoryError>(HasSubstr("out of memory: 8388608 bytes asked, 3145728 of 4194304 free")));
}

TEST_F(CudaDeviceTest, TellsOfALostDeviceAtEveryFurtherCall) {
  open();
  fake::fail({.function = "cudaStreamSynchronize", .error = cudaErrorIllegalAddress, .sticky = true});
  const auto told = ThrowsMessage<DeviceError>(AllOf(HasSubstr("cudaStreamSynchronize: an illegal memory access"),
                                                     HasSubstr("The device is lost for this process")));
  EXPECT_THAT([&] { stream->synchronize(); }, told);
  EXPECT_THAT([&] { upload(*stream); }, told);
  EXPECT_THAT([&] { static_cast<void>(device->memory_info()); }, told);
  EXPECT_EQ(fake::calls("cudaMemcpyAsync"), 0U);
  give_back();
  fake::reset();
}

TEST_F(CudaDeviceTest, CallsNothingOnAnotherDeviceWhenItsContextIsGone) {
  open();
  fake::fail({.function = "cuCtxPushCurrent"});
  EXPECT_THAT([&] { upload(*stream); },
              ThrowsMessage<DeviceError>(HasSubstr("the context of cuda:0 is gone: somebody called cudaDeviceReset")));
  EXPECT_EQ(fake::calls("cudaMemcpyAsync"), 0U);
  EXPECT_THROW(stream->synchronize(), DeviceError);
  EXPECT_EQ(cudaFree(buffer.data()), cudaSuccess);  // the books are closed: a lost device gives nothing back
  EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
}

class CudaCallTest : public CudaDeviceTest, public ::testing::WithParamInterface<const char*> {};

// Everything the plugin can be asked, once.
TEST_P(CudaCallTest, FailsAsAnErrorOfOursAndLeaksNothing) {
  fake::fail({.function = GetParam(), .error = cudaErrorUnknown});
  int failures = 0;
  const auto attempt = [&failures](const std::function<void()>& step) {
    try {
      step();
    } catch (const DeviceError& error) {
      EXPECT_THAT(error.what(), HasSubstr(GetParam()));
      ++failures;
    }
  };
  attempt([&] { open(); });
  if (failures > 0) open();
  attempt([&] { static_cast<void>(device->name()); });
  attempt([&] { static_cast<void>(device->memory_info()); });
  attempt([&] { upload(*stream); });
  attempt([&] { stream->fill_async(buffer.data(), 1, kBytes); });
  attempt([&] { stream->launch([] {}); });
  attempt([&] { stream->record(*event); });
  attempt([&] { device->record_all(*event); });
  attempt([&] { stream->wait(*event); });
  attempt([&] { static_cast<void>(stream->query()); });
  attempt([&] { stream->synchronize(); });
  attempt([&] { static_cast<void>(event->query()); });
  attempt([&] { event->synchronize(); });
  attempt([&] { static_cast<void>(event->elapsed_ms(*event)); });
  attempt([&] { device->synchronize(); });
  EXPECT_EQ(failures, 1);
}

INSTANTIATE_TEST_SUITE_P(Names, CudaCallTest,
                         ::testing::Values("cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaMemGetInfo",
                                           "cudaMalloc", "cudaHostRegister", "cudaStreamCreateWithFlags",
                                           "cudaEventCreateWithFlags", "cudaMemcpyAsync", "cudaMemsetAsync",
                                           "cudaLaunchHostFunc", "cudaEventRecord", "cudaStreamWaitEvent",
                                           "cudaStreamQuery", "cudaStreamSynchronize", "cudaEventQuery",
                                           "cudaEventSynchronize", "cudaEventElapsedTime", "cudaDeviceSynchronize"));

// --- what is missing ---

TEST_F(CudaDeviceTest, SaysThatTheDriverIsMissingAndLooksAgain) {
  fake::reset({.driver = false});
  EXPECT_THAT([] { static_cast<void>(open_device("cuda:0")); },
              ThrowsMessage<DeviceError>(AllOf(HasSubstr("cuda:0 cannot be opened: cudaGetDeviceCount"),
                                               HasSubstr("install NVIDIA's driver 580 or newer"),
                                               HasSubstr("Loaders without a device work"))));
  fake::reset();
  EXPECT_NO_THROW(open());
}

TEST_F(CudaDeviceTest, SaysThatNoGpuIsVisible) {
  fake::reset({.devices = 0});
  EXPECT_THAT([] { static_cast<void>(open_device("cuda:0")); },
              ThrowsMessage<DeviceError>(HasSubstr("CUDA_VISIBLE_DEVICES")));
}

TEST_F(CudaDeviceTest, SaysHowManyDevicesThereAre) {
  EXPECT_THAT([] { static_cast<void>(open_device("cuda:7")); },
              ThrowsMessage<DeviceError>(HasSubstr("there are 2 devices here, cuda:0 to cuda:1")));
}

TEST(OpenDeviceTest, RefusesNamesThatAreNone) {
  for (const char* name : {"", ":", "cuda:", "cuda:x", "cuda:-1", "cuda:0 ", "CUDA:0", "../x:0"})
    EXPECT_THROW(static_cast<void>(open_device(name)), ConfigError) << name;
  EXPECT_THROW(static_cast<void>(open_device("cpu:1")), ConfigError);
  EXPECT_EQ(open_device("cpu")->id(), DeviceId{});
  EXPECT_EQ(open_device("simulated:3")->id(), (DeviceId{DeviceType::kSimulated, 3}));
}

TEST(OpenDeviceTest, SaysWhichPluginIsMissingAndWhereItLooked) {
  EXPECT_THAT(
      [] { static_cast<void>(open_device("tpu:0")); },
      ThrowsMessage<DeviceError>(AllOf(HasSubstr("libinfeed_tpu.so is in none of"),
                                       HasSubstr(std::getenv("INFEED_PLUGIN_PATH")), HasSubstr("INFEED_PLUGIN_PATH"))));
}

}  // namespace
}  // namespace infeed
