// Tensors on "cuda:0": the plugin's host side with host twins for kernels, over the stand-in for CUDA's runtime.
#include "infeed/train/train.h"

#include <gmock/gmock.h>

#include <vector>

#include "fake_cudart/fake_cudart.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/device/open.h"
#include "infeed/loader/loader.h"
#include "train/device_list.h"

namespace infeed {

std::shared_ptr<Device> make_device() { return open_device("cuda:0"); }

namespace {

/// Nothing of the runtime is left when all tests are over.
class NothingIsLeft : public ::testing::Environment {
  void TearDown() override {
    EXPECT_THAT(fake::leaks(), ::testing::IsEmpty());
    EXPECT_THAT(fake::take_complaints(), ::testing::IsEmpty());
  }
};
[[maybe_unused]] const auto* const kNothingIsLeft = ::testing::AddGlobalTestEnvironment(new NothingIsLeft);

std::vector<double> sums_of(Loader& loader) {
  std::vector<double> sums;
  while (const auto batch = loader.next()) {
    const Tensor pixels = Tensor::from_array(batch->at("image"), batch->owner());
    sums.push_back(sum((pixels.to(DType::kFloat32) - 100.0) / 50.0).item());
  }
  return sums;
}

TEST_F(DeviceTensorTest, BatchesThatALoaderStagedAreTensorsInTheStreamWhereTheyAreReady) {
  const SyntheticDataset dataset(24, Schema{{"image", DType::kUInt8, {5, 7, 3}}});
  Loader here(dataset, {.batch_size = 4}), staged(dataset, {.batch_size = 4, .num_workers = 2, .device = "cuda:0"});
  EXPECT_THAT(sums_of(staged), ::testing::Pointwise(::testing::DoubleNear(1e-2), sums_of(here)));
}

}  // namespace
}  // namespace infeed
