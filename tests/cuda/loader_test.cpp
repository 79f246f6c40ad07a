// Loaders whose batches go to "cuda:0": the plugin over the stand-in for CUDA's runtime.
#include "infeed/loader/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fake_cudart/fake_cudart.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/device/open.h"
#include "loader/pinning.h"
#include "support/staging.h"
#include "support/watched.h"

namespace infeed {
namespace {

using ::testing::AllOf;
using testing::Gate;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::ThrowsMessage;
using testing::Watched;

const Schema kSchema{{"x", DType::kFloat32, {1000}}, {"index", DType::kInt64, {}}};
const SyntheticDataset kForty(40, kSchema);

/// checksum() of what lies on the device, read in CUDA's default stream without another wait.
std::uint64_t checksum_of(const Batch& batch, Device& device) {
  return testing::checksum(StagedBatch(batch), *device.borrow_stream(nullptr));
}

std::vector<std::uint64_t> rest_of_epoch(Loader& loader, Device& device) {
  std::vector<std::uint64_t> sums;
  while (const auto batch = loader.next()) sums.push_back(checksum_of(*batch, device));
  return sums;
}

class CudaLoaderTest : public ::testing::Test {
 protected:
  void TearDown() override {
    device.reset();
    EXPECT_THAT(fake::leaks(), IsEmpty());
    EXPECT_THAT(fake::take_complaints(), IsEmpty());
    fake::reset();
  }
  std::shared_ptr<Device> device = open_device("cuda:0");
};

// --- batches arrive on the device ---

TEST_F(CudaLoaderTest, GivesTheHostsBatchesOnTheDeviceEpochAfterEpoch) {
  Loader reference(kForty, {.batch_size = 4, .shuffle = true});
  for (const int ahead : {1, 2, 4}) {
    reference.set_epoch(0);
    Loader loader(
        kForty, {.batch_size = 4, .shuffle = true, .num_workers = 2, .device = "cuda:0", .prefetch_to_device = ahead});
    for (int epoch = 0; epoch < 2; ++epoch)
      EXPECT_EQ(rest_of_epoch(loader, *device), testing::rest_of_epoch(reference));
  }
}

TEST_F(CudaLoaderTest, CopiesOnAStreamOfItsOwnThatTheConsumersStreamWaitsFor) {
  device.reset();
  fake::reset({.bandwidth_bytes_per_s = 50e6});
  device = open_device("cuda:0");
  cudaStream_t mine = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking), cudaSuccess);
  const auto stream = device->borrow_stream(mine);
  Loader reference(kForty, {.batch_size = 20});
  {
    Loader loader(kForty, {.batch_size = 20, .device = "cuda:0", .compute_stream = stream.get()});
    EXPECT_EQ(&loader.stager()->compute_stream(), stream.get());
    while (const auto batch = loader.next())
      EXPECT_EQ(testing::checksum(StagedBatch(*batch), *stream), testing::checksum(*reference.next()));
  }
  EXPECT_EQ(cudaStreamDestroy(mine), cudaSuccess);
}

TEST_F(CudaLoaderTest, IsCaughtByTheStandInWhereNobodyWaits) {
  Loader loader(kForty, {.batch_size = 20, .device = "cuda:0"});
  const auto compute = device->borrow_stream(nullptr);
  Gate gate;
  gate.close(*compute);  // the event that batches wait for is not passed in any other stream
  const auto batch = loader.next();
  const auto side = device->create_stream();
  compute->fill_async(batch->at("x").data, 0, 4);
  EXPECT_THROW(side->fill_async(batch->at("x").data, 1, 4), DeviceError);
  EXPECT_THAT(fake::take_complaints(), ::testing::ElementsAre(HasSubstr("let it wait for an event")));
}

TEST_F(CudaLoaderTest, WritesNoBufferThatAStepStillUses) {
  Loader loader(kForty, {.batch_size = 4, .device = "cuda:0", .prefetch_to_device = 1});
  const auto compute = device->borrow_stream(nullptr);
  Gate gate;
  gate.close(*compute);
  for (int step = 0; step < 3; ++step) {  // two buffers: the third batch comes into the first one
    const auto batch = loader.next();
    compute->fill_async(batch->at("x").data, static_cast<std::uint8_t>(step), 4);
  }
  gate.open();
  EXPECT_EQ(rest_of_epoch(loader, *device).size(), 7U);
}

TEST_F(CudaLoaderTest, CopiesEachByteOnceFromWhereTheWorkerWroteIt) {
  const Watched dataset(32, 1000);
  Loader loader(dataset, {.batch_size = 4, .num_workers = 2, .device = "cuda:0"});
  while (loader.next()) {
  }
  std::size_t rows = 0, bytes = 0;
  for (const fake::Copy& copy : fake::copies()) {
    EXPECT_EQ(copy.kind, cudaMemcpyHostToDevice);
    EXPECT_TRUE(copy.registered);
    bytes += copy.bytes;
    for (std::size_t row = 0; row < 4; ++row) rows += dataset.written().count(copy.src + row * 4000);
  }
  EXPECT_EQ(rows, 32U);
  EXPECT_EQ(bytes, 32U * 4000);
  EXPECT_EQ(dataset.written_in_use(), 0);
}

TEST_F(CudaLoaderTest, ResumesAndResetsAsOnTheHost) {
  Loader reference(kForty, {.batch_size = 4});
  const auto whole = testing::rest_of_epoch(reference);
  Loader loader(kForty, {.batch_size = 4, .device = "cuda:0"});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(loader.next());
  Loader other(kForty, {.batch_size = 4, .device = "cuda:0"});
  other.load_state_dict(loader.state_dict());
  EXPECT_EQ(rest_of_epoch(other, *device), std::vector(whole.begin() + 3, whole.end()));
  loader.reset();
  EXPECT_EQ(loader.epoch(), 1U);
  std::size_t batches = 0;
  for (const Batch& batch : loader) batches += batch.at("x").device == device->id() ? 1U : 0U;
  EXPECT_EQ(batches, whole.size());
}

TEST_F(CudaLoaderTest, ServesASimulatedDeviceAndTheCpuByTheSameOption) {
  Loader reference(kForty, {.batch_size = 4});
  const auto whole = testing::rest_of_epoch(reference);
  Loader simulated(kForty, {.batch_size = 4, .device = "simulated:0"});
  EXPECT_EQ(testing::rest_of_epoch(*simulated.stager()), whole);
  Loader host(kForty, {.batch_size = 4, .device = "cpu"});
  EXPECT_EQ(testing::rest_of_epoch(host), whole);
  EXPECT_EQ(host.stager(), nullptr);
}

// --- batches stay on the host, page-locked, and the user copies them ---

/// `x = batch.cuda(non_blocking=True); del batch`, in some stream, again and again; then everything is looked at.
class Trainer {
 public:
  explicit Trainer(const Watched& dataset) : dataset_(dataset) {}
  ~Trainer() {
    for (const Kept& each : kept_) EXPECT_EQ(cudaFree(each.on_device), cudaSuccess);
  }
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  void take(Batch batch, cudaStream_t stream) {
    const ArrayView& x = batch.at("x");
    kept_.push_back(
        {.on_device = nullptr, .indices = batch.indices(), .epoch = batch.epoch(), .row = x.numel() / batch.size()});
    ASSERT_EQ(cudaMalloc(&kept_.back().on_device, x.nbytes()), cudaSuccess);
    ASSERT_EQ(cudaMemcpyAsync(kept_.back().on_device, x.data, x.nbytes(), cudaMemcpyHostToDevice, stream), cudaSuccess);
  }
  /// Batches with a byte that is not theirs.
  [[nodiscard]] int spoilt() const {
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    int count = 0;
    for (const Kept& each : kept_) {
      const auto* x = static_cast<const std::int32_t*>(each.on_device);
      bool good = true;
      for (std::size_t i = 0; i < each.indices.size(); ++i, x += each.row)
        good = good && std::all_of(x, x + each.row,
                                   [&](std::int32_t v) { return v == dataset_.value(each.epoch, each.indices[i]); });
      count += good ? 0 : 1;
    }
    return count;
  }

 private:
  struct Kept {
    void* on_device;
    std::vector<std::int64_t> indices;
    std::uint64_t epoch;
    std::int64_t row;
  };
  const Watched& dataset_;
  std::vector<Kept> kept_;
};

class CudaPinTest : public CudaLoaderTest {
 protected:
  void SetUp() override { ASSERT_EQ(cudaStreamCreateWithFlags(&side, cudaStreamNonBlocking), cudaSuccess); }
  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(side), cudaSuccess);
    CudaLoaderTest::TearDown();
  }
  const Watched dataset{40, 20'000};
  cudaStream_t side = nullptr;
};

TEST_F(CudaPinTest, NoByteOfALaterBatchIsEverSeenInTheDefaultStreamOrASideStream) {
  Trainer trainer(dataset);
  Loader loader(dataset, {.batch_size = 2, .num_workers = 2, .pin_memory = true});
  for (int epoch = 0; epoch < 3; ++epoch) {
    while (auto batch = loader.next()) {
      EXPECT_TRUE(device->is_registered(batch->at("x").data, batch->at("x").nbytes()));
      const bool aside = batch->number() % 2 == 1;
      trainer.take(std::move(*batch), aside ? side : nullptr);
    }
  }
  EXPECT_EQ(trainer.spoilt(), 0);
  EXPECT_EQ(dataset.written_in_use(), 0);
  for (const fake::Copy& copy : fake::copies()) EXPECT_TRUE(copy.registered);
}

TEST_F(CudaPinTest, CountsItsPageLocks) {
  Loader loader(dataset, {.batch_size = 4, .pin_memory = true});
  const auto batch = loader.next();
  const LoaderStats stats = loader.stats();
  ASSERT_TRUE(stats.staging);
  EXPECT_EQ(stats.staging->registrations, 1);
  EXPECT_GE(stats.staging->registered_bytes, batch->at("x").nbytes());
  EXPECT_EQ(stats.staging->batches, 0U);
}

TEST_F(CudaPinTest, ACopyThatHasNotBegunKeepsItsBatchThroughAnEpoch) {
  Trainer trainer(dataset);
  Loader loader(dataset, {.batch_size = 4, .pin_memory = true});
  Gate gate;
  gate.close(*device->borrow_stream(side));
  while (auto batch = loader.next()) trainer.take(std::move(*batch), side);
  gate.open();
  EXPECT_EQ(trainer.spoilt(), 0);
  EXPECT_EQ(dataset.written_in_use(), 0);
}

TEST_F(CudaPinTest, WithoutTheGuardALaterBatchIsSeen) {
  Trainer trainer(dataset);
  Loader loader(dataset, {.batch_size = 4});
  loader.keep_memory_warm();
  const auto pinning = std::make_shared<Pinning>(device, 64, Pinning::Guard::kOffForTests);
  Gate gate;
  gate.close(*device->borrow_stream(side));
  while (auto batch = loader.next()) trainer.take(pinning->pin(std::move(*batch)), side);
  gate.open();
  EXPECT_GT(trainer.spoilt(), 0);
  EXPECT_GT(dataset.written_in_use(), 0);
  pinning->close();
}

TEST_F(CudaPinTest, MemoryServesAgainOnceTheDeviceIsPastIt) {
  Loader loader(dataset, {.batch_size = 4, .prefetch = 1, .pin_memory = true});
  for (int epoch = 0; epoch < 5; ++epoch) {
    Trainer trainer(dataset);
    while (auto batch = loader.next()) {
      trainer.take(std::move(*batch), side);
      ASSERT_EQ(cudaStreamSynchronize(side), cudaSuccess);
    }
  }
  EXPECT_LE(fake::calls("cudaHostRegister"), 4U);
}

TEST_F(CudaPinTest, WaitsForTheDeviceWhereMemoryIsShort) {
  Trainer trainer(dataset);
  Loader loader(dataset, {.batch_size = 2, .prefetch = 1, .pin_memory = true, .memory_limit = 3 * 2 * 80'000 + 4096});
  for (int epoch = 0; epoch < 2; ++epoch) {
    while (auto batch = loader.next()) trainer.take(std::move(*batch), side);
  }
  EXPECT_EQ(trainer.spoilt(), 0);
}

TEST_F(CudaPinTest, BatchesOutliveTheirLoader) {
  Trainer trainer(dataset);
  std::optional<Batch> first, second;
  {
    Loader loader(dataset, {.batch_size = 4, .device = "cuda:0", .prefetch_to_device = 0});
    first = loader.next();
    second = loader.next();
  }
  EXPECT_TRUE(device->is_registered(first->at("x").data, 4));
  trainer.take(std::move(*first), side);
  trainer.take(std::move(*second), side);
  EXPECT_EQ(trainer.spoilt(), 0);
  first.reset();
  second.reset();
}

// --- failures ---

TEST_F(CudaLoaderTest, TellsOfADeviceLostInMidEpochAndEnds) {
  Loader loader(kForty, {.batch_size = 4, .num_workers = 2, .device = "cuda:0"});
  ASSERT_TRUE(loader.next());
  fake::fail({.function = "cudaMemcpyAsync", .error = cudaErrorLaunchFailure, .sticky = true});
  const auto rest = [&] {
    while (loader.next()) {
    }
  };
  EXPECT_THAT(rest,
              ThrowsMessage<DeviceError>(AllOf(HasSubstr("cudaMemcpyAsync"), HasSubstr("cudaErrorLaunchFailure"))));
  EXPECT_THROW(rest(), DeviceError);
}

// Calls that wait may fail with what other work lacked.
TEST_F(CudaLoaderTest, TellsOfAWaitThatFailedForWantOfMemoryAndBeginsAfresh) {
  Loader loader(kForty, {.batch_size = 4, .device = "cuda:0"});
  fake::fail({.function = "cudaEventSynchronize", .error = cudaErrorMemoryAllocation});
  const auto rest = [&] {
    for (int epochs = 0; epochs < 100; epochs += loader.next() ? 0 : 1) {
    }
  };
  EXPECT_THAT(rest, ThrowsMessage<DeviceError>(HasSubstr("cudaErrorMemoryAllocation")));
  loader.reset();
  EXPECT_TRUE(loader.next());
}

TEST_F(CudaLoaderTest, SaysHowManyBatchesAreHeldWhereTheDeviceIsFull) {
  device.reset();
  fake::reset({.memory_bytes = 64 << 10});
  Loader loader(kForty, {.batch_size = 4, .device = "cuda:0"});
  std::vector<Batch> held;
  const auto hold_all = [&] {
    while (auto batch = loader.next()) held.push_back(std::move(*batch));
  };
  EXPECT_THAT(hold_all, ThrowsMessage<MemoryError>(
                            AllOf(HasSubstr("cudaMalloc: out of memory"), HasSubstr("staged batches are held"))));
  held.clear();
  EXPECT_TRUE(loader.next());
}

TEST_F(CudaLoaderTest, CopiesPlainlyWhereNothingCanBePageLocked) {
  set_log_sink([](LogLevel, std::string_view) {});
  Loader reference(kForty, {.batch_size = 4});
  Loader loader(kForty, {.batch_size = 4, .device = "cuda:0"});
  fake::fail({.function = "cudaHostRegister", .error = cudaErrorMemoryAllocation});
  EXPECT_EQ(rest_of_epoch(loader, *device), testing::rest_of_epoch(reference));
  EXPECT_FALSE(fake::copies().front().registered);
  set_log_sink({});
}

TEST(CudaLoaderOptionsTest, AreCheckedBeforeAnythingIsOpened) {
  const auto stream = open_device("cpu")->create_stream();
  EXPECT_THROW(Loader(kForty, {.device = "cuda:0", .prefetch_to_device = -1}), ConfigError);
  EXPECT_THROW(Loader(kForty, {.compute_stream = stream.get()}), ConfigError);
  EXPECT_THROW(Loader(kForty, {.device = "cuda:0", .prefetch_to_device = 65}), ConfigError);
  EXPECT_THROW(Loader(kForty, {.device = "cuda:9"}), DeviceError);
  EXPECT_THROW(Loader(kForty, {.device = "gpu 1"}), ConfigError);
}

}  // namespace
}  // namespace infeed
