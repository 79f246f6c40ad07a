// Nothing stands in for anything here: what is said where something is missing, and the list of devices on a GPU, where there is one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "conformance/device_conformance.h"
#include "infeed/base/error.h"
#include "infeed/device/open.h"

namespace infeed {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

std::string why_not(const std::string& name) {
  try {
    return open_device(name)->name().empty() ? "it has no name" : "";
  } catch (const DeviceError& error) {
    return error.what();
  }
}

std::vector<DeviceFactory> gpus() {
  if (!why_not("cuda:0").empty()) return {};
  return {{"cuda", [] { return open_device("cuda:0"); }}};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);
INSTANTIATE_TEST_SUITE_P(Real, DeviceConformance, ::testing::ValuesIn(gpus()),
                         [](const auto& one) { return one.param.name; });

TEST(MissingTest, APluginThatIsMissingIsLookedForAgainTheNextTime) {
  const std::string folder = std::getenv("INFEED_PLUGIN_PATH");
  ASSERT_EQ(setenv("INFEED_PLUGIN_PATH", "/nowhere:", 1), 0);
  EXPECT_THAT(why_not("gaps"), AllOf(HasSubstr("libinfeed_gaps.so is in none of /nowhere, "),
                                     HasSubstr("Loaders without a device work")));
  ASSERT_EQ(setenv("INFEED_PLUGIN_PATH", ("/nowhere:" + folder).c_str(), 1), 0);
  EXPECT_THAT(why_not("gaps"), HasSubstr("has gaps in its table of devices"));
}

TEST(MissingTest, ALibraryThatAPluginNeedsIsNamed) {
  EXPECT_THAT(why_not("orphan"),
              AllOf(HasSubstr("orphan:0 cannot be opened: plugin '"), HasSubstr("libinfeed_orphan.so"),
                    HasSubstr("libinfeed_test_nowhere.so: cannot open shared object file"),
                    HasSubstr("LD_LIBRARY_PATH"), HasSubstr("Loaders without a device work")));
}

// CUDA's own runtime, on a machine that most likely has no GPU. Where it has one, the device has a name.
TEST(MissingTest, CudaOpensOrSaysWhichPartIsMissingAndWhatToInstall) {
  const auto good = AnyOf(
      "", AllOf(HasSubstr("cuda:0 cannot be opened: cudaGetDeviceCount"),
                AnyOf(HasSubstr("driver 580"), HasSubstr("nvidia-smi")), HasSubstr("Loaders without a device work")));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(why_not("cuda:0"), good);
}

}  // namespace
}  // namespace infeed
