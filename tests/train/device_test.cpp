// Tensors on the simulated device, whose memory the host cannot read, and what only it can show.
#include "infeed/train/tensor/device.h"

#include <gmock/gmock.h>

#include "infeed/base/error.h"
#include "infeed/device/simulated.h"
#include "infeed/train/train.h"
#include "train/device_list.h"

namespace infeed {
namespace {

constexpr SimulatedOptions kFast{
    .bandwidth_bytes_per_s = 0, .latency_us = 0, .check_races = true, .hidden_memory = true};

}  // namespace

std::shared_ptr<Device> make_device() { return std::make_shared<SimulatedDevice>(kFast); }

namespace {

/// Sets a device of its own up for "simulated:0".
class SimulatedTensorTest : public ::testing::Test {
 protected:
  ~SimulatedTensorTest() override { release_device(id); }
  void use(SimulatedOptions options) { use_device(std::make_shared<SimulatedDevice>(options)); }
  const DeviceId id{DeviceType::kSimulated, 0};
};

TEST_F(SimulatedTensorTest, IsOpenedByItsName) {
  const Tensor x = Tensor::ones({3}).to(device_from_string("simulated:0"));
  EXPECT_EQ(sum(x * 2.0).item(), 6.0);
}

TEST_F(SimulatedTensorTest, GivesItsCacheBackBeforeItSaysThatMemoryIsFull) {
  SimulatedOptions options = kFast;
  options.memory_bytes = 1 << 20;
  use(options);
  static_cast<void>(Tensor::zeros({200000}, id));
  EXPECT_EQ(Tensor::ones({230000}, id).size(0), 230000);
  EXPECT_THAT([&] { static_cast<void>(Tensor::zeros({300000}, id)); },
              ::testing::ThrowsMessage<MemoryError>(::testing::HasSubstr("batch_size")));
}

TEST_F(SimulatedTensorTest, AFailedCopyIsThrownWhereItIsAwaited) {
  SimulatedOptions options = kFast;
  options.faults.fail_copy = 2;
  use(options);
  const Tensor x = Tensor::ones({5}).to(id);
  EXPECT_THROW(static_cast<void>(x.cpu()), DeviceError);
  EXPECT_TRUE(equal(x.cpu(), Tensor::ones({5})));
}

TEST_F(SimulatedTensorTest, ATensorOutlivesItsDevicesName) {
  use(kFast);
  const Tensor x = Tensor::ones({5}).to(id);
  release_device(id);
  EXPECT_EQ(sum(x).item(), 5.0);
}

TEST_F(SimulatedTensorTest, FreedMemoryIsWrittenAnewOnlyBehindItsLastReader) {
  use(kFast);
  for (int round = 0; round < 50; ++round) {
    Tensor total = Tensor::zeros({1000}, id);
    for (int i = 1; i <= 4; ++i) total = total + Tensor::full({1000}, static_cast<double>(i), id);
    EXPECT_EQ(sum(total).item(), 10000.0);
  }
}

// On other machines the hardware may leave the upper bits of an address out.
#ifdef __x86_64__
TEST(SimulatedTensorDeathTest, TheHostCannotReadHiddenMemory) {
  SimulatedDevice device(kFast);
  auto* const memory = static_cast<volatile char*>(device.allocate(16));
  EXPECT_DEATH(static_cast<void>(*memory), "");
  device.free(const_cast<char*>(memory));
}
#endif

}  // namespace
}  // namespace infeed
