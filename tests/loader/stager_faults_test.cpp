#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "infeed/dataset/synthetic.h"
#include "support/staging.h"

namespace infeed {
namespace {

using testing::bytes_of;
using testing::checksum;
using testing::CountingDevice;
using testing::rest_of_epoch;
using testing::wait_until;

const Schema kSchema{{"x", DType::kFloat32, {1000}}, {"index", DType::kInt64, {}}};
const SyntheticDataset kForty(40, kSchema);

LoaderOptions threads(int workers = 2) { return {.batch_size = 4, .shuffle = true, .num_workers = workers}; }

std::shared_ptr<CountingDevice> make_device(SimulatedOptions options = {}) {
  return std::make_shared<CountingDevice>(std::move(options));
}

/// Calls next() until the epoch ends; what it throws is listed as "error".
std::vector<std::string> story(Stager& stager) {
  std::vector<std::string> events;
  for (;;) {
    try {
      const auto staged = stager.next();
      if (!staged) return events;
      events.push_back("batch " + std::to_string(staged->number()));
    } catch (const Error&) {
      events.emplace_back("error");
    }
  }
}

// --- registration ---

TEST(StagerFaultsTest, ExtentsArePageLockedOnceAndAllAreGivenBack) {
  Loader loader(kForty, {.batch_size = 4, .num_workers = 2, .prefetch = 4});
  const auto device = make_device();
  {
    Stager stager(loader, device);
    for (int epoch = 0; epoch < 5; ++epoch) rest_of_epoch(stager);
    EXPECT_GT(stager.stats().registrations, 0);
    EXPECT_EQ(stager.stats().registrations, device->registered());
    EXPECT_EQ(device->registrations_made(), device->registered());
    EXPECT_LE(device->registrations_made(), 4 + 2 + 2);  // armed, being copied, drawn and in hand
  }
  EXPECT_EQ(device->registered(), 0);
}

TEST(StagerFaultsTest, RegistrationsAreBounded) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  Stager stager(loader, device, {.in_flight = 1, .max_registrations = 2});
  for (int epoch = 0; epoch < 5; ++epoch) rest_of_epoch(stager);
  EXPECT_LE(device->most_registered(), 2);
}

TEST(StagerFaultsTest, ADeviceThatRefusesToPageLockCopiesPlainlyAndWarnsOnce) {
  std::atomic<int> warnings{0};
  set_log_sink([&](LogLevel level, std::string_view) { warnings += level == LogLevel::kWarning ? 1 : 0; });
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  const auto device = make_device({.registered_limit_bytes = 4096});
  Stager stager(loader, device);
  EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
  EXPECT_EQ(warnings, 1);
  EXPECT_EQ(device->registered(), 0);
  set_log_sink({});
}

// --- faults ---

TEST(StagerFaultsTest, ErrorsOfTheDatasetSurfaceInOrderAndTheBatchesAfterThemCome) {
  const SyntheticDataset rare(40, kSchema, {.fail_every = 10});
  Loader loader(rare, {.batch_size = 4, .num_workers = 2});
  Stager stager(loader, make_device(), {.in_flight = 3});
  const std::vector<std::string> expected{"batch 0", "batch 1", "error", "batch 2", "error",
                                          "batch 3", "batch 4", "error", "batch 5", "error"};
  EXPECT_EQ(story(stager), expected);
}

class CopyFaultTest : public ::testing::TestWithParam<bool> {};

/// Sums of ten batches; after a failure the state before the batch is loaded.
std::vector<std::uint64_t> persistent_epoch(Stager& stager, int& failures) {
  std::vector<std::uint64_t> sums;
  while (sums.size() < 10) {
    const State before = stager.state_dict();
    try {
      sums.push_back(checksum(*stager.next(), stager.compute_stream()));
    } catch (const DeviceError& error) {
      EXPECT_NE(std::string(error.what()).find("injected fault"), std::string::npos) << error.what();
      ++failures;
      stager.load_state_dict(before);
    }
  }
  return sums;
}

TEST_P(CopyFaultTest, AfterAFailedCopyTheStateBeforeItGoesOn) {
  Loader reference(kForty, threads());
  const auto expected = rest_of_epoch(reference);
  for (std::uint64_t nth = 1; nth <= 20; ++nth) {
    Loader loader(kForty, threads());
    Stager stager(loader, make_device({.faults = {.fail_copy = nth}}), {.register_memory = GetParam()});
    int failures = 0;
    EXPECT_EQ(persistent_epoch(stager, failures), expected);
    EXPECT_EQ(failures, 1);
  }
}

TEST_P(CopyFaultTest, AFailedCopyFailsEveryNextUntilAReset) {
  Loader loader(kForty, threads());
  Stager stager(loader, make_device({.faults = {.fail_copy = 8}}), {.register_memory = GetParam()});
  const auto drain = [&] {
    while (stager.next()) {
    }
  };
  EXPECT_THROW(drain(), DeviceError);
  EXPECT_THROW(drain(), DeviceError);
  EXPECT_LE(stager.stats().batches, 4U + 2);  // in flight when it was noticed
  try {
    stager.compute_stream().synchronize();  // fails if it was already waiting for that copy
  } catch (const DeviceError&) {
  }
  stager.reset();
  EXPECT_EQ(rest_of_epoch(stager).size(), 10U);
}

TEST_P(CopyFaultTest, ALostDeviceFailsEveryCallAndLeavesNothing) {
  Loader loader(kForty, threads());
  const auto device = make_device({.faults = {.fail_copy = 5, .sticky = true}});
  {
    Stager stager(loader, device, {.register_memory = GetParam()});
    const auto drain = [&] {
      while (stager.next()) {
      }
    };
    EXPECT_THROW(drain(), DeviceError);
    EXPECT_THROW(drain(), DeviceError);
    stager.reset();
    EXPECT_THROW(drain(), DeviceError);
  }
  EXPECT_EQ(loader.stats().batches_held, 0);
}

INSTANTIATE_TEST_SUITE_P(PageLocked, CopyFaultTest, ::testing::Bool());

TEST(StagerFaultsTest, AFailedAllocationIsAMemoryErrorOrWaitsForABufferAndLosesNothing) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    Loader loader(kForty, threads());
    Stager stager(loader, make_device({.faults = {.fail_allocation = nth}}));
    auto events = story(stager);
    std::erase(events, "error");
    EXPECT_EQ(events.size(), 10U);
    EXPECT_EQ(events.back(), "batch 9");
  }
}

TEST(StagerFaultsTest, AFailedRegistrationSlowsOnly) {
  set_log_level(LogLevel::kError);
  Loader reference(kForty, threads());
  Loader loader(kForty, threads());
  const auto device = make_device({.faults = {.fail_registration = 2}});
  {
    Stager stager(loader, device);
    EXPECT_EQ(rest_of_epoch(stager), rest_of_epoch(reference));
  }
  EXPECT_EQ(device->registered(), 0);
  set_log_level(LogLevel::kWarning);
}

// --- the end ---

TEST(StagerFaultsTest, DestructionAtAnyMomentLeavesNothing) {
  const SyntheticDataset slow(40, kSchema, {.cost_us = 100});
  Loader loader(slow, threads());
  const auto device = make_device({.latency_us = 200});
  for (int batches = 0; batches <= 11; ++batches) {
    {
      Stager stager(loader, device, {.in_flight = 1 + batches % 4});
      for (int i = 0; i < batches; ++i) (void)stager.next();
    }
    EXPECT_EQ(device->registered(), 0);
    EXPECT_EQ(loader.stats().batches_held, 0);
    EXPECT_EQ(device->used_bytes(), 0U);
    loader.set_epoch(0);
  }
}

TEST(StagerFaultsTest, BatchesMayBeDroppedOnAnyThreadAlsoOnTheDevices) {
  Loader loader(kForty, threads());
  const auto device = make_device();
  Stager stager(loader, device);
  std::vector<std::thread> droppers;
  while (auto staged = stager.next()) {
    auto shared = std::make_shared<StagedBatch>(std::move(*staged));
    device->simulated().compute(stager.compute_stream(), {.run = [shared] {}, .reads = {bytes_of(shared->at("x"))}});
    droppers.emplace_back([shared]() mutable { shared.reset(); });
  }
  for (std::thread& dropper : droppers) dropper.join();
  stager.compute_stream().synchronize();
  wait_until([&] { return stager.stats().batches_held == 0; });
}

TEST(StagerFaultsTest, AForkedChildIsRefusedAndEndsInPeace) {
  Loader loader(kForty, threads());
  auto stager = std::make_unique<Stager>(loader, make_device());
  auto staged = stager->next();
  const pid_t child = ::fork();
  if (child == 0) {
    bool refused = false;
    try {
      (void)stager->next();
    } catch (const ConfigError&) {
      refused = true;
    }
    staged.reset();
    stager.reset();
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(stager->next());
}

}  // namespace
}  // namespace infeed
