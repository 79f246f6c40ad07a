// CUDA does not survive a fork: what is forked must not touch it, and says so instead of hanging.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>

#include "fake_cudart/fake_cudart.h"
#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/device/open.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"
#include "support/child.h"
#include "support/staging.h"

namespace infeed {
namespace {

const SyntheticDataset kForty(40, {{"x", DType::kFloat32, {1000}}});

bool says(const std::function<void()>& call, const std::string& text) {
  try {
    call();
  } catch (const DeviceError& error) {
    return std::string(error.what()).find(text) != std::string::npos;
  }
  return false;
}

class CudaForkTest : public ::testing::TestWithParam<WorkerKind> {};

TEST_P(CudaForkTest, WorkersOfAProcessThatUsesCudaNeverTouchIt) {
  const auto device = open_device("cuda:0");  // before the workers
  Loader reference(kForty, {.batch_size = 4});
  Loader loader(kForty, {.batch_size = 4, .num_workers = 2, .worker_kind = GetParam(), .device = "cuda:0"});
  EXPECT_EQ(testing::rest_of_epoch(*loader.stager()), testing::rest_of_epoch(reference));
  loader.set_num_workers(3);
  ASSERT_TRUE(loader.next());
  EXPECT_EQ(fake::calls_in_children(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, CudaForkTest, ::testing::Values(WorkerKind::kFork, WorkerKind::kSpawn),
                         [](const auto& kind) { return std::string(to_string(kind.param)); });

TEST(CudaForkTest, AForkedChildGetsAnErrorAndNoHang) {
  auto device = open_device("cuda:0");
  auto stream = device->create_stream();
  const auto child = [&] {
    return says([&] { stream->synchronize(); }, "does not survive a fork") &&
           says([] { static_cast<void>(open_device("cuda:0")); }, "does not survive a fork") &&
           says([] { static_cast<void>(open_device("cuda:1")); }, "does not survive a fork");
  };
  EXPECT_TRUE(testing::holds_in_child(child));
  EXPECT_NO_THROW(stream->synchronize());
  EXPECT_EQ(fake::calls_in_children(), 0U);
}

TEST(CudaForkTest, ObjectsOfTheParentAreInertInAChild) {
  Loader loader(kForty, {.batch_size = 4, .device = "cuda:0"});
  Loader pinned(kForty, {.batch_size = 4, .pin_memory = true});
  auto batch = loader.next();
  auto locked = pinned.next();
  const auto child = [&] {
    batch.reset();
    locked.reset();
    return true;
  };
  EXPECT_TRUE(testing::holds_in_child(child));
  EXPECT_EQ(fake::calls_in_children(), 0U);
  ASSERT_TRUE(loader.next());
  ASSERT_TRUE(pinned.next());
}

}  // namespace
}  // namespace infeed
