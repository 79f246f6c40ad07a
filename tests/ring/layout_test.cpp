#include "ring/layout.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "infeed/base/error.h"
#include "ring/ring.h"

namespace infeed {
namespace {

constexpr RingConfig kConfig{.num_slots = 3, .max_rows = 10, .max_claimants = 2, .num_extents = 5};

/// Zeroed memory at a multiple of 128, with `spare` bytes more than the ring needs.
struct ControlBlock {
  explicit ControlBlock(std::size_t bytes) : storage(bytes + 128) {}
  std::byte* data() { return storage.data() + (128 - reinterpret_cast<std::uintptr_t>(storage.data()) % 128); }
  std::vector<std::byte> storage;
};

TEST(RingLayoutTest, AreasFollowEachOtherWithoutOverlap) {
  const RingLayout layout = RingLayout::of(kConfig);
  EXPECT_EQ(layout.claimants, 768u);
  EXPECT_EQ(layout.extents, layout.claimants + 2 * 1024);
  EXPECT_EQ(layout.heads, layout.extents + 128);
  EXPECT_EQ(layout.owners, layout.heads + 3 * 256);
  EXPECT_EQ(layout.indices, layout.owners + 3 * 512);
  EXPECT_EQ(layout.reports, layout.indices + 256);
  EXPECT_EQ(layout.traces, layout.reports + 3u * 16 * 448);
  EXPECT_EQ(layout.total, layout.traces + 2u * 1024 * 64);
}

TEST(RingLayoutTest, WordsThatDifferentSidesWriteShareNoCacheLine) {
  EXPECT_EQ(offsetof(RingHeader, stop), 128u);
  EXPECT_EQ(offsetof(RingHeader, bell), 256u);
  EXPECT_EQ(offsetof(BellWords, sleepers), 128u);
  EXPECT_EQ(offsetof(RingHeader, consumer_waits), 512u);
  EXPECT_EQ(offsetof(RingHeader, extents_used), 640u);
}

TEST(RingLayoutTest, WhatTheConsumerWatchesIsNotWhereClaimantsLookForWork) {
  EXPECT_EQ(offsetof(SlotHead, seq), 0u);
  EXPECT_EQ(offsetof(SlotHead, todo), 8u);
  EXPECT_EQ(offsetof(SlotHead, full), 32u);
  EXPECT_EQ(offsetof(SlotHead, done), 128u);
}

TEST(RingLayoutTest, AtomicsNeedNoLock) {
  EXPECT_TRUE(std::atomic<std::uint64_t>::is_always_lock_free);
  EXPECT_TRUE(std::atomic<std::int32_t>::is_always_lock_free);
}

TEST(RingLayoutTest, TheLargestConfigDoesNotOverflow) {
  const RingConfig largest{.num_slots = 1 << 16, .max_rows = 0x7fffffff, .max_claimants = 256, .num_extents = 1 << 24};
  EXPECT_GT(RingLayout::of(largest).total, RingLayout::of(largest).reports);
  EXPECT_LT(RingLayout::of(largest).total, std::size_t{1} << 52);
}

TEST(RingLayoutTest, RefusesSizesOutOfRange) {
  for (const RingConfig& bad :
       {RingConfig{.num_slots = 0}, RingConfig{.num_slots = (1 << 16) + 1}, RingConfig{.max_rows = 0},
        RingConfig{.max_claimants = 257}, RingConfig{.num_extents = -1}}) {
    EXPECT_THROW((void)Ring::bytes(bad), ConfigError);
  }
}

TEST(RingAttachTest, FindsTheConfigOfTheOneThatFormatted) {
  ControlBlock block(Ring::bytes(kConfig));
  const Ring ring = Ring::format(block.data(), kConfig);
  EXPECT_EQ(Ring::attach(block.data(), Ring::bytes(kConfig)).config(), kConfig);
}

TEST(RingAttachTest, RefusesAnotherMagic) {
  ControlBlock block(Ring::bytes(kConfig));
  EXPECT_THROW((void)Ring::attach(block.data(), Ring::bytes(kConfig)), ConfigError);
}

TEST(RingAttachTest, NamesBothVersions) {
  ControlBlock block(Ring::bytes(kConfig));
  (void)Ring::format(block.data(), kConfig);
  reinterpret_cast<RingHeader*>(block.data())->version = 99;
  try {
    (void)Ring::attach(block.data(), Ring::bytes(kConfig));
    FAIL() << "attached to version 99";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("version 99"), std::string::npos) << error.what();
  }
}

TEST(RingAttachTest, RefusesMemoryThatIsTooShort) {
  ControlBlock block(Ring::bytes(kConfig));
  (void)Ring::format(block.data(), kConfig);
  EXPECT_THROW((void)Ring::attach(block.data(), Ring::bytes(kConfig) - 1), ConfigError);
  EXPECT_THROW((void)Ring::attach(block.data(), 16), ConfigError);
}

TEST(RingAttachTest, RefusesForgedSizes) {
  ControlBlock block(Ring::bytes(kConfig));
  (void)Ring::format(block.data(), kConfig);
  reinterpret_cast<RingHeader*>(block.data())->num_slots = 1 << 30;
  EXPECT_THROW((void)Ring::attach(block.data(), Ring::bytes(kConfig)), ConfigError);
}

}  // namespace
}  // namespace infeed
