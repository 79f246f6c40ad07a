// The list of train/device_list.cpp on "cuda:0" with whatever runtime and plugin are found: a GPU's, in bench/gpu_check.sh.
#include <cstdio>

#include "infeed/base/error.h"
#include "infeed/device/open.h"
#include "train/device_list.h"

namespace infeed {

std::shared_ptr<Device> make_device() { return open_device("cuda:0"); }

}  // namespace infeed

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  try {
    static_cast<void>(infeed::make_device());
  } catch (const infeed::DeviceError& error) {
    std::printf("skipped: %s\n", error.what());
    return 0;
  }
  return RUN_ALL_TESTS();
}
