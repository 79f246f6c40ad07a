#include "infeed/loader/stager.h"

#include <gtest/gtest.h>

#include "infeed/base/error.h"
#include "infeed/collate/ragged.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/device/host.h"
#include "support/staging.h"

namespace infeed {
namespace {

using testing::bytes_of;
using testing::checksum;
using testing::CountingDevice;
using testing::Gate;
using testing::rest_of_epoch;
using testing::wait_until;

constexpr std::uint64_t kBatchBytes = 4 * (1000 * 4 + 8);
const Schema kSchema{{"x", DType::kFloat32, {1000}}, {"index", DType::kInt64, {}}};
const SyntheticDataset kForty(40, kSchema);

LoaderOptions threads(int workers = 2) { return {.batch_size = 4, .shuffle = true, .num_workers = workers}; }

std::shared_ptr<CountingDevice> make_device(SimulatedOptions options = {}) {
  return std::make_shared<CountingDevice>(std::move(options));
}

// --- what comes out ---

class InFlightTest : public ::testing::TestWithParam<int> {};

TEST_P(InFlightTest, ADeviceGetsTheLoadersBatchesEpochAfterEpoch) {
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  Stager stager(loader, make_device(), {.in_flight = GetParam()});
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
}

TEST_P(InFlightTest, TheHostGetsThemToo) {
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  for (const bool zero_copy : {true, false}) {
    Stager stager(loader, std::make_shared<HostDevice>(), {.in_flight = GetParam(), .zero_copy = zero_copy});
    EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
  }
}

TEST_P(InFlightTest, WorkQueuedOnABatchSeesItThoughItIsDroppedAtOnce) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  Stager stager(loader, device, {.in_flight = GetParam()});
  std::vector<std::int64_t> expected, seen;
  while (const auto staged = stager.next()) {
    expected.insert(expected.end(), staged->indices().begin(), staged->indices().end());
    const ArrayView index = staged->at("index");
    const auto read = [&seen, index] {
      seen.insert(seen.end(), index.as<std::int64_t>(), index.as<std::int64_t>() + index.numel());
    };
    device->simulated().compute(stager.compute_stream(), {.duration_us = 300, .run = read, .reads = {bytes_of(index)}});
  }
  stager.compute_stream().synchronize();
  EXPECT_EQ(seen, expected);
}

TEST_P(InFlightTest, AStateTellsOfBatchesHandedOutNotOfThoseStaged) {
  Loader first_loader(kForty, threads());
  Loader second_loader(kForty, threads(1));
  Stager first(first_loader, make_device(), {.in_flight = GetParam()});
  Stager second(second_loader, make_device(), {.in_flight = GetParam()});
  const auto whole = rest_of_epoch(first);
  first.set_epoch(0);
  for (std::size_t done = 0; done <= whole.size(); ++done) {
    second.load_state_dict(State::from_json(first.state_dict().to_json()));
    EXPECT_EQ(rest_of_epoch(second), std::vector(whole.begin() + static_cast<std::ptrdiff_t>(done), whole.end()));
    if (done < whole.size()) {
      ASSERT_TRUE(first.next());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Depths, InFlightTest, ::testing::Values(1, 2, 3, 4));

TEST(StagerTest, ArraysCarryTheDevicesIdAndTheBatchesMeta) {
  Loader loader(kForty, {.batch_size = 4});
  Stager stager(loader, make_device({.index = 3}));
  ASSERT_TRUE(stager.next());
  const auto staged = stager.next();
  EXPECT_EQ(staged->at("x").device, (DeviceId{DeviceType::kSimulated, 3}));
  EXPECT_EQ(staged->at("x").shape, Shape({4, 1000}));
  EXPECT_EQ(staged->indices(), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(staged->number(), 1U);
  EXPECT_EQ(staged->size(), 4);
}

TEST(StagerTest, TheHostsBatchesAreNotCopied) {
  Loader loader(kForty, {.batch_size = 4});
  Stager stager(loader, std::make_shared<HostDevice>());
  const auto staged = stager.next();
  EXPECT_GE(loader.stats().batches_held, 1);
  EXPECT_EQ(staged->at("x").device, DeviceId{});
  EXPECT_EQ(stager.stats().bytes, 0U);
  EXPECT_EQ(stager.stats().batches_held, 1);
}

TEST(StagerTest, BatchesOfAnySizeGrowTheirBuffers) {
  const SyntheticDataset ragged(60, {{"tokens", DType::kInt64, {-1}}, {"index", DType::kInt64, {}}},
                                {.min_length = 0, .max_length = 3000});
  const auto make = [&] { return Loader(ragged, {.batch_size = 4, .collate = std::make_shared<RaggedCollate>()}); };
  Loader reference = make();
  Loader loader = make();
  Stager stager(loader, make_device());
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
}

// --- epochs ---

TEST(StagerTest, TheEndComesOnceAndNothingIsReadAheadOfTheNextEpoch) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device());
  EXPECT_EQ(rest_of_epoch(stager).size(), 10U);
  EXPECT_EQ(stager.epoch(), 1U);
  EXPECT_FALSE(stager.state_dict().get_bool("in_epoch"));
  EXPECT_EQ(loader.state_dict(), stager.state_dict());
  EXPECT_EQ(stager.next()->epoch(), 1U);
}

TEST(StagerTest, AnEmptyDatasetHasNoBatches) {
  const SyntheticDataset empty(0, kSchema);
  Loader loader(empty, threads());
  Stager stager(loader, make_device());
  EXPECT_FALSE(stager.next());
  EXPECT_FALSE(stager.next());
}

TEST(StagerTest, ResetAfterAnyNumberOfBatchesBeginsTheNextEpoch) {
  Loader reference(kForty, threads());
  reference.set_epoch(1);
  const auto second_epoch = rest_of_epoch(reference);
  for (int batches = 1; batches <= 10; ++batches) {
    Loader loader(kForty, threads());
    Stager stager(loader, make_device(), {.in_flight = 3});
    for (int i = 0; i < batches; ++i) ASSERT_TRUE(stager.next());
    stager.reset();
    EXPECT_EQ(stager.epoch(), 1U);
    EXPECT_EQ(rest_of_epoch(stager), second_epoch);
  }
}

TEST(StagerTest, SetEpochRepeatsOne) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device());
  const auto first = rest_of_epoch(stager);
  EXPECT_NE(rest_of_epoch(stager), first);
  ASSERT_TRUE(stager.next());
  stager.set_epoch(0);
  EXPECT_EQ(rest_of_epoch(stager), first);
}

TEST(StagerTest, AForeignStateIsRefusedAndThePositionStays) {
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  Stager stager(loader, make_device());
  ASSERT_TRUE(stager.next());
  ASSERT_TRUE(reference.next());
  EXPECT_THROW(stager.load_state_dict(State()), StateError);
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
}

TEST(StagerTest, AStateLoadedBeforeTheFirstBatchHolds) {
  Loader reference(kForty, threads());
  ASSERT_TRUE(reference.next());
  Loader loader(kForty, threads());
  Stager stager(loader, make_device());
  stager.load_state_dict(reference.state_dict());
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
}

// --- overlap and memory ---

TEST(StagerTest, TheNextBatchesAreCopiedWhileOneIsComputedOn) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  Stager stager(loader, device, {.in_flight = 2});
  const auto staged = stager.next();
  Gate gate;
  gate.close(device->simulated(), stager.compute_stream(), bytes_of(staged->at("x")));
  wait_until([&] { return stager.stats().bytes == 3 * kBatchBytes; });
  EXPECT_FALSE(stager.compute_stream().query());  // the first step has not ended
}

TEST(StagerTest, AnExtentIsFreeAsSoonAsItsCopyHasPassedWithoutAnotherCall) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device());
  const auto staged = stager.next();
  wait_until([&] { return stager.stats().bytes == 3 * kBatchBytes && loader.stats().batches_held == 0; });
}

TEST(StagerTest, AnExtentIsHeldWhileItsCopyWaitsForTheComputeStream) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  Stager stager(loader, device, {.in_flight = 1});
  auto first = stager.next();
  Gate gate;
  gate.close(device->simulated(), stager.compute_stream(), bytes_of(first->at("x")));
  wait_until([&] { return stager.stats().bytes == 2 * kBatchBytes; });
  first.reset();
  const auto second = stager.next();  // the third batch goes where the first is still in use
  wait_until([&] { return stager.stats().bytes == 2 * kBatchBytes && loader.stats().batches_held == 1; });
  gate.open();
  wait_until([&] { return stager.stats().bytes == 3 * kBatchBytes && loader.stats().batches_held == 0; });
}

TEST(StagerTest, TheHostNeverRunsAheadByMoreThanWhatIsInFlight) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  Stager stager(loader, device, {.in_flight = 2});
  while (const auto staged = stager.next()) {
    device->simulated().compute(stager.compute_stream(), {.duration_us = 200, .reads = {bytes_of(staged->at("x"))}});
    EXPECT_LE(loader.stats().batches_held, 3);
    EXPECT_LE(stager.stats().device_bytes, 4 * 2 * kBatchBytes);
  }
}

TEST(StagerTest, HeldBatchesStayAsTheyWereAlsoAfterTheStagerIsGone) {
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  const auto device = make_device();
  std::vector<StagedBatch> held;
  {
    Stager stager(loader, device);
    while (auto staged = stager.next()) held.push_back(std::move(*staged));
    stager.compute_stream().synchronize();
  }
  const auto stream = device->create_stream();
  for (const StagedBatch& staged : held) EXPECT_EQ(checksum(staged, *stream), checksum(*reference.next()));
  held.clear();
  EXPECT_EQ(device->used_bytes(), 0U);
}

TEST(StagerTest, BuffersOfBatchesOnceHeldAreGivenBack) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device(), {.in_flight = 1});
  std::vector<StagedBatch> held;
  for (int i = 0; i < 8; ++i) held.push_back(std::move(*stager.next()));
  held.clear();
  rest_of_epoch(stager);
  rest_of_epoch(stager);
  EXPECT_LE(stager.stats().device_bytes, 4 * 2 * kBatchBytes);
}

TEST(StagerTest, MaxHeldIsAnErrorThatCountsThem) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device(), {.max_held = 2});
  std::vector<StagedBatch> held;
  for (int i = 0; i < 2; ++i) held.push_back(std::move(*stager.next()));
  EXPECT_THROW((void)stager.next(), MemoryError);
  held.pop_back();
  EXPECT_EQ(stager.next()->number(), 2U);
}

TEST(StagerTest, AFullDeviceIsAnErrorThatCountsTheBatchesAndLosesNone) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device({.memory_bytes = 100'000}));
  std::vector<StagedBatch> held;
  try {
    while (auto staged = stager.next()) held.push_back(std::move(*staged));
    FAIL() << "no error";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find(std::to_string(held.size()) + " staged batches"), std::string::npos)
        << error.what();
  }
  const std::size_t number = held.size();
  held.clear();
  EXPECT_EQ(stager.next()->number(), number);
}

TEST(StagerTest, ADeviceWithRoomForOneBatchSuffices) {
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  Stager stager(loader, make_device({.memory_bytes = 20'000}));
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
}

TEST(StagerTest, AHostLimitOfTheLoadersOwnNeedSuffices) {
  const SyntheticDataset large(40, {{"x", DType::kUInt8, {1 << 18}}});
  Loader reference(large, threads());
  LoaderOptions options = threads();
  options.memory_limit = 4 << 20;  // three batches of 1 MiB, and padding
  Loader loader(large, std::move(options));
  Stager stager(loader, make_device(), {.in_flight = 4});
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
}

TEST(StagerTest, PrivateCopiesAreNeverPageLocked) {
  const SyntheticDataset many(1300, {{"index", DType::kInt64, {}}});
  Loader loader(many, {.batch_size = 1});
  std::vector<Batch> hoard;  // leaves too few extents
  for (int i = 0; i < 1100; ++i) hoard.push_back(std::move(*loader.next()));
  const auto device = make_device();
  Stager stager(loader, device);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(stager.next());
  EXPECT_EQ(device->registered(), 0);
}

// --- options and figures ---

TEST(StagerTest, BadOptionsAreRefused) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  EXPECT_THROW(Stager(loader, nullptr), ConfigError);
  EXPECT_THROW(Stager(loader, device, {.in_flight = 0}), ConfigError);
  EXPECT_THROW(Stager(loader, device, {.in_flight = 65}), ConfigError);
  EXPECT_THROW(Stager(loader, device, {.max_held = -1}), ConfigError);
  EXPECT_THROW(Stager(loader, device, {.in_flight = 4, .max_registrations = 4}), ConfigError);
}

TEST(StagerTest, StatsCountWhatWasDone) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device());
  rest_of_epoch(stager);
  wait_until([&] { return stager.stats().bytes == 10 * kBatchBytes; });  // counted by the thread that sees copies end
  const StagerStats stats = stager.stats();
  EXPECT_EQ(stats.batches, 10U);
  EXPECT_GT(stats.copy_bytes_per_s, 0);
  EXPECT_GT(stats.copy_share, 0);
  EXPECT_GT(stats.device_bytes, kBatchBytes);
  EXPECT_NE(stats.str().find("10 batches"), std::string::npos);
  stager.reset_stats();
  EXPECT_EQ(stager.stats().batches, 0U);
}

}  // namespace
}  // namespace infeed
