// The stand-in itself: what it must catch, and that it lets good programs be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <future>

#include "fake_cudart/fake_cudart.h"

namespace infeed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::size_t kBytes = 64 << 10;

class StandInTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(cudaHostRegister(host.data(), kBytes, cudaHostRegisterDefault), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&memory, kBytes), cudaSuccess);
    for (cudaStream_t& stream : streams)
      ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  }
  void TearDown() override {
    open_gate();
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    static_cast<void>(fake::take_complaints());
    for (const cudaStream_t stream : streams) EXPECT_EQ(cudaStreamDestroy(stream), cudaSuccess);
    EXPECT_EQ(cudaFree(memory), cudaSuccess);
    EXPECT_EQ(cudaHostUnregister(host.data()), cudaSuccess);
    EXPECT_THAT(fake::take_complaints(), IsEmpty());
    EXPECT_THAT(fake::leaks(), IsEmpty());
    fake::reset();
  }
  cudaError_t upload(cudaStream_t stream) {
    return cudaMemcpyAsync(memory, host.data(), kBytes, cudaMemcpyHostToDevice, stream);
  }
  /// Work queued in the stream now does not begin before open_gate().
  void close_gate(cudaStream_t stream) {
    ASSERT_EQ(cudaLaunchHostFunc(
                  stream, [](void* held) { static_cast<std::promise<void>*>(held)->get_future().wait(); }, &gate),
              cudaSuccess);
    closed = true;
  }
  void open_gate() {
    if (std::exchange(closed, false)) gate.set_value();
  }

  std::vector<std::byte> host = std::vector<std::byte>(kBytes, std::byte{1});
  void* memory = nullptr;
  std::array<cudaStream_t, 2> streams{};
  std::promise<void> gate;
  bool closed = false;
};

TEST_F(StandInTest, LetsAGoodProgramBe) {
  cudaEvent_t copied = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&copied, cudaEventDisableTiming), cudaSuccess);
  EXPECT_EQ(upload(streams[0]), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(copied, streams[0]), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(streams[1], copied, 0), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, kBytes, streams[1]), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[1]), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(copied), cudaSuccess);
  EXPECT_THAT(fake::take_complaints(), IsEmpty());
}

TEST_F(StandInTest, CatchesWorkOfTwoStreamsThatNoEventOrders) {
  close_gate(streams[0]);
  EXPECT_EQ(upload(streams[0]), cudaSuccess);
  EXPECT_NE(cudaMemsetAsync(memory, 0, kBytes, streams[1]), cudaSuccess);
  EXPECT_THAT(fake::take_complaints(), ElementsAre(HasSubstr("let it wait for an event")));
}

TEST_F(StandInTest, CatchesMemoryFreedUnlockedOrWrittenUnderACopy) {
  close_gate(streams[0]);
  EXPECT_EQ(upload(streams[0]), cudaSuccess);
  EXPECT_NE(cudaFree(memory), cudaSuccess);
  EXPECT_NE(cudaHostUnregister(host.data()), cudaSuccess);
  EXPECT_TRUE(fake::in_use(host.data() + 100, 1, true));
  EXPECT_FALSE(fake::in_use(host.data() + 100, 1, false));
  EXPECT_TRUE(fake::in_use(memory, 1, false));
  EXPECT_THAT(fake::take_complaints(), ElementsAre(HasSubstr("cudaFree"), HasSubstr("cudaHostUnregister")));
}

TEST_F(StandInTest, CatchesAnAsynchronousCopyOfOtherMemoryThatIsNotWaitedFor) {
  std::vector<std::byte> pageable(kBytes);
  EXPECT_EQ(cudaMemcpyAsync(memory, pageable.data(), kBytes, cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_THAT(fake::take_complaints(), IsEmpty());
  EXPECT_EQ(cudaMemcpyAsync(memory, pageable.data(), kBytes, cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  EXPECT_NE(cudaStreamQuery(streams[0]), cudaSuccess);
  EXPECT_THAT(fake::take_complaints(), ElementsAre(HasSubstr("was not waited for")));
}

TEST_F(StandInTest, CatchesWhatIsRegisteredTwiceFreedTwiceOrGone) {
  EXPECT_EQ(cudaHostRegister(host.data() + 10, 10, 0), cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_EQ(cudaHostUnregister(host.data() + 10), cudaErrorHostMemoryNotRegistered);
  void* gone = nullptr;
  ASSERT_EQ(cudaMalloc(&gone, 64), cudaSuccess);
  EXPECT_EQ(cudaFree(gone), cudaSuccess);
  EXPECT_EQ(cudaFree(gone), cudaErrorInvalidValue);
  EXPECT_NE(cudaMemcpyAsync(gone, host.data(), 64, cudaMemcpyHostToDevice, streams[0]), cudaSuccess);
  EXPECT_EQ(fake::take_complaints().size(), 4U);
}

TEST_F(StandInTest, CatchesHandlesOfNobodyAndOfAnotherDevice) {
  auto* const nobody = reinterpret_cast<cudaStream_t>(this);
  EXPECT_EQ(cudaStreamSynchronize(nobody), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  cudaEvent_t elsewhere = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&elsewhere, 0), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(elsewhere, streams[0]), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(elsewhere), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(elsewhere), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(fake::take_complaints().size(), 3U);
}

TEST_F(StandInTest, CatchesCallsOfHostFunctions) {
  ASSERT_EQ(cudaLaunchHostFunc(
                streams[0], [](void*) { static_cast<void>(cudaFree(nullptr)); }, nullptr),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(streams[0]), cudaSuccess);
  EXPECT_THAT(fake::take_complaints(), ElementsAre(HasSubstr("called by a host function")));
}

TEST_F(StandInTest, FailsTheCallThatItIsTold) {
  fake::fail({.function = "cudaMemsetAsync", .error = cudaErrorInvalidValue, .nth = 2});
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 1, streams[0]), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 1, streams[0]), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaMemsetAsync(memory, 0, 1, streams[0]), cudaSuccess);
  EXPECT_EQ(fake::calls("cudaMemsetAsync"), 3U);
}

TEST(StandInDeathTest, EndsAProcessThatLeaksOrDidWrong) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto leak = [] {
    cudaStream_t stream = nullptr;
    static_cast<void>(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    std::exit(0);
  };
  EXPECT_EXIT(leak(), ::testing::ExitedWithCode(fake::kExitCode), "never given back: 1 streams");
  const auto wrong = [] {
    static_cast<void>(cudaStreamDestroy(reinterpret_cast<cudaStream_t>(&fake::reset)));
    std::exit(0);
  };
  EXPECT_EXIT(wrong(), ::testing::ExitedWithCode(fake::kExitCode), "cudaStreamDestroy: no such stream");
}

}  // namespace
}  // namespace infeed
