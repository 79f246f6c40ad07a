#include "conformance/device_conformance.h"
#include "infeed/device/host.h"
#include "infeed/device/simulated.h"

namespace infeed {
namespace {

INSTANTIATE_TEST_SUITE_P(All, DeviceConformance,
                         testing::Values(DeviceFactory{"host", [] { return std::make_shared<HostDevice>(); }},
                                         DeviceFactory{"simulated", [] { return std::make_shared<SimulatedDevice>(); }},
                                         DeviceFactory{"simulated_checked",
                                                       [] {
                                                         return std::make_shared<SimulatedDevice>(
                                                             SimulatedOptions{.check_races = true});
                                                       }}),
                         [](const auto& one) { return one.param.name; });

TEST(DeviceIdTest, IsWrittenAsTypeAndIndex) {
  EXPECT_EQ(to_string(DeviceId{}), "cpu:0");
  EXPECT_EQ(to_string(DeviceId{DeviceType::kCUDA, 1}), "cuda:1");
  EXPECT_EQ(to_string(DeviceId{DeviceType::kSimulated, 2}), "simulated:2");
}

}  // namespace
}  // namespace infeed
