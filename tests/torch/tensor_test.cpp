#include "infeed/torch/tensor.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "infeed/torch/prefetcher.h"
#include "torch/fake_device.h"

namespace infeed::torch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Schema every_dtype() {
  std::vector<Field> fields;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    fields.push_back({std::string(to_string(dtype)), dtype, {2, 3}});
  }
  fields.push_back({"empty", DType::kFloat32, {0, 3}});
  return Schema(std::move(fields));
}

class ToTensorTest : public ::testing::Test {
 protected:
  SyntheticDataset dataset{8, every_dtype()};
  Loader loader{dataset, {.batch_size = 4, .num_workers = 1, .worker_kind = WorkerKind::kFork}};
  Batch batch = loader.next().value();
};

TEST_F(ToTensorTest, StandsOnTheBatchsMemory) {
  const at::Tensor image = to_tensor(batch.at("float32"));
  EXPECT_EQ(image.const_data_ptr(), batch.at("float32").data);
  EXPECT_THAT(image.sizes(), ElementsAre(4, 2, 3));
  EXPECT_THAT(image.strides(), ElementsAre(6, 3, 1));
  image.fill_(7);
  EXPECT_EQ(batch.at("float32").as<float>()[23], 7);
}

TEST_F(ToTensorTest, KnowsEveryDtype) {
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    const BatchArray array = batch.at(to_string(dtype));
    const at::Tensor tensor = to_tensor(array);
    EXPECT_EQ(tensor.scalar_type(), to_scalar_type(dtype));
    EXPECT_EQ(tensor.itemsize(), static_cast<std::int64_t>(itemsize(dtype)));
    EXPECT_EQ(tensor.const_data_ptr(), array.data);
    EXPECT_EQ(to_dtype(to_scalar_type(dtype)), dtype);
  }
  EXPECT_THROW((void)to_dtype(at::kComplexFloat), ConfigError);
}

TEST_F(ToTensorTest, TakesArraysWithoutElements) {
  EXPECT_THAT(to_tensor(batch.at("empty")).sizes(), ElementsAre(4, 0, 3));
  EXPECT_EQ(to_tensor(batch.at("empty")).sum().item<float>(), 0);
}

TEST_F(ToTensorTest, KeepsStrides) {
  ArrayView view = batch.at("float32");
  view.shape = {4, 3, 2};
  view.strides = {6, 1, 3};
  EXPECT_TRUE(at::equal(to_tensor(view, batch.owner()), to_tensor(batch.at("float32")).transpose(1, 2)));
}

TEST_F(ToTensorTest, GivesTheExtentHomeWithItsLastView) {
  at::Tensor view = to_tensor(batch.at("float32"))[1];
  const at::Tensor before = view.clone();
  batch = Batch();
  (void)loader.next();
  EXPECT_EQ(loader.stats().batches_held, 1);
  EXPECT_TRUE(at::equal(view, before));
  std::thread([moved = std::move(view)]() mutable { moved.reset(); }).join();
  EXPECT_EQ(loader.stats().batches_held, 0);
}

TEST(ToTensor, OutlivesTheLoader) {
  at::Tensor kept;
  {
    const SyntheticDataset dataset(4, {{"x", DType::kInt64, {}}});
    Loader loader(dataset, {.batch_size = 4, .num_workers = 1, .worker_kind = WorkerKind::kFork});
    kept = to_tensor(loader.next()->at("x"));
  }
  EXPECT_TRUE(at::equal(kept, at::arange(4)));
}

TEST(ToTensor, TakesPartInAutograd) {
  const SyntheticDataset dataset(4, {{"x", DType::kFloat32, {5}}});
  Loader loader(dataset, {.batch_size = 4});
  const at::Tensor weight = at::ones({5}).requires_grad_();
  at::Tensor x = to_tensor(loader.next()->at("x"));
  const at::Tensor sum = x.sum(0);
  (x * weight).sum().backward();
  EXPECT_TRUE(at::allclose(weight.grad(), sum));
}

TEST(ToTensor, RefusesMemoryOfOtherDevices) {
  float value = 0;
  const ArrayView view(&value, DType::kFloat32, {1}, {DeviceType::kSimulated, 0});
  EXPECT_THROW((void)to_tensor(view, nullptr), ConfigError);
}

class PrefetcherTest : public ::testing::Test {
 protected:
  SyntheticDataset dataset{10, {{"x", DType::kInt64, {}}}};
  Loader loader{dataset, {.batch_size = 4}};
};

TEST_F(PrefetcherTest, PassesBatchesThroughOnTheHost) {
  Prefetcher batches(loader, at::kCPU);
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::vector<std::int64_t> all;
    for (TensorBatch& batch : batches) {
      EXPECT_EQ(loader.stats().batches_held, 1);
      for (std::int64_t i = 0; i < batch.size(); ++i) all.push_back(batch.at("x")[i].item<std::int64_t>());
    }
    EXPECT_THAT(all, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  }
}

TEST_F(PrefetcherTest, AnotherEpochEndsTheIteratorsOfTheOneBefore) {
  Prefetcher batches(loader, at::kCPU);
  auto old = batches.begin();
  auto at = batches.begin();
  EXPECT_TRUE(++old == batches.end());
  EXPECT_EQ((++at)->number, 1U);
  for (int step = 0; step < 2; ++step) EXPECT_EQ(++at == batches.end(), step == 1);
  EXPECT_TRUE(++at == batches.end());
}

TEST_F(PrefetcherTest, SaysWhatIsMissing) {
  if (at::hasCUDA()) GTEST_SKIP() << "this LibTorch has CUDA";
  try {
    Prefetcher batches(loader, at::Device(at::kCUDA, 0));
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no device cuda:0"));
  }
  EXPECT_THROW(Prefetcher(loader, at::kCPU, {.ahead = 0}), ConfigError);
  EXPECT_THROW((void)TensorBatch().at("y"), IndexError);
}

// 64 rows of 1,000 numbers, from forked workers: a batch that is given up early is overwritten soon.
class DevicePrefetcherTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { infeed::testing::register_fake_device(); }

  SyntheticDataset dataset{64, {{"x", DType::kInt64, {1000}}, {"index", DType::kInt64, {}}}};
  Loader loader{dataset, {.batch_size = 4, .num_workers = 2, .worker_kind = WorkerKind::kFork}};
  Loader plain{dataset, {.batch_size = 4}};
  infeed::testing::FakeCounts before = infeed::testing::FakeDevice::get().counts();
};

TEST_F(DevicePrefetcherTest, GivesTheBatchesOnTheDevice) {
  Prefetcher batches(loader, infeed::testing::FakeDevice::device(), {.ahead = 3});
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (TensorBatch& batch : batches) {
      EXPECT_EQ(batch.at("x").device(), infeed::testing::FakeDevice::device());
      EXPECT_TRUE(at::equal(batch.at("x").cpu(), to_tensor(plain.next()->at("x"))));
    }
    EXPECT_FALSE(plain.next());
  }
}

TEST_F(DevicePrefetcherTest, CopiesFromPageLockedMemoryAndTellsTheAllocator) {
  Prefetcher batches(loader, infeed::testing::FakeDevice::device());
  int count = 0;
  for (TensorBatch& batch : batches) count += batch.size() > 0 ? 1 : 0;
  const infeed::testing::FakeCounts after = infeed::testing::FakeDevice::get().counts();
  EXPECT_EQ(after.copies - before.copies, 2 * count);
  EXPECT_EQ(after.from_pageable, before.from_pageable);
  EXPECT_EQ(after.waits - before.waits, count);
  EXPECT_EQ(after.recorded - before.recorded, 2 * count);
}

TEST_F(DevicePrefetcherTest, ABreakEndsItsThread) {
  Prefetcher batches(loader, infeed::testing::FakeDevice::device());
  for (TensorBatch& batch : batches) {
    if (batch.number == 2) break;
  }
  std::size_t left = 0;
  for (TensorBatch& batch : batches) left += static_cast<std::size_t>(batch.size());
  EXPECT_EQ(left, 64U);
}

TEST_F(DevicePrefetcherTest, ErrorsComeInTheirPlace) {
  const SyntheticDataset faulty(12, {{"index", DType::kInt64, {}}}, {.fail_every = 6});  // 5 and 11
  Loader source(faulty, {.batch_size = 2, .num_workers = 1, .worker_kind = WorkerKind::kFork});
  Prefetcher batches(source, infeed::testing::FakeDevice::device());
  auto at = batches.begin();
  ++at;
  EXPECT_EQ(at->indices[0], 2);
  EXPECT_THROW(++at, DataError);
  ++at;
  EXPECT_EQ(at->indices[0], 6);
}

}  // namespace
}  // namespace infeed::torch
