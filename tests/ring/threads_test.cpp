#include <algorithm>
#include <atomic>
#include <thread>

#include "ring/feed.h"
#include "ring/rig.h"

namespace infeed {
namespace {

/// Claimants as threads over one mapping: what a race detector can follow.
int run_feed(const FeedOptions& options, int batches) {
  Feed feed(options);
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < options.num_workers; ++i) {
      workers.emplace_back([&feed, i] { claim_until_stopped(feed.ring, feed.arena, i, feed.event); });
    }
    feed.run(batches, [] {});
    feed.ring.request_stop();
  }
  EXPECT_EQ(feed.ring.free_extents(), options.num_extents);
  return feed.delivered;
}

TEST(RingThreadsTest, CooperativeBatchesArriveWholeAndInOrder) { EXPECT_EQ(run_feed({}, 1000), 1000); }

TEST(RingThreadsTest, OneRowBatchesArrive) { EXPECT_EQ(run_feed({.rows = 1}, 1000), 1000); }

TEST(RingThreadsTest, WholeBatchesBindTheirExtents) {
  EXPECT_EQ(run_feed({.num_extents = 8, .whole = true}, 1000), 1000);
}

TEST(RingThreadsTest, AssignedBatchesArrive) {
  EXPECT_EQ(run_feed({.depth = 3, .num_extents = 8, .whole = true, .assign = true}, 1000), 1000);
}

TEST(RingThreadsTest, AbandonedBatchesDrain) { EXPECT_EQ(run_feed({.cancel_chance = 0.3}, 500), 500); }

TEST(RingThreadsTest, AbandonedWholeBatchesDrain) {
  EXPECT_EQ(run_feed({.num_extents = 8, .whole = true, .cancel_chance = 0.3}, 500), 500);
}

TEST(RingThreadsTest, WholeBatchesWaitForAnExtentWithoutBeingLost) {
  EXPECT_EQ(
      run_feed(
          {.depth = 4, .num_extents = 3, .whole = true, .cancel_chance = 0.1, .hold_chance = 0.9, .overcommit = true},
          500),
      500);
}

/// Counts each row it gets, until the ring stops.
void count_claims(Ring& ring, int claimant, std::vector<std::atomic<int>>& claims) {
  while (!ring.stopping()) {
    const auto claim = ring.claim(claimant);
    for (int row = 0; claim && row < claim->rows; ++row) ++claims[static_cast<std::size_t>(claim->first_row + row)];
    claim ? ring.publish(*claim, -1) : std::this_thread::yield();
  }
}

TEST(RingThreadsTest, NoRowIsHandedOutTwice) {
  const RingConfig config{.num_slots = 2, .max_rows = 256, .max_claimants = 4, .num_extents = 1};
  const Arena arena = Arena::create({.control_bytes = Ring::bytes(config), .extent_bytes = 1, .num_extents = 1});
  Ring ring = Ring::format(arena.control(), config);
  std::vector<std::atomic<int>> claims(256);
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) workers.emplace_back([&, i] { count_claims(ring, i, claims); });
  for (int batch = 1; batch <= 200; ++batch) {
    const int slot = ring.arm({.seq = static_cast<std::uint64_t>(batch), .rows = 256, .extent = 0});
    while (!ring.ready(slot)) std::this_thread::yield();
    ring.take(slot);
    EXPECT_EQ(std::count(claims.begin(), claims.end(), batch), 256);
  }
  ring.request_stop();
}

/// Releases come from any thread of the consumer's process.
TEST(RingThreadsTest, ExtentsAreAcquiredByOneAtATime) {
  const RingConfig config{.num_extents = 8};
  const Arena arena = Arena::create({.control_bytes = Ring::bytes(config), .extent_bytes = 1, .num_extents = 8});
  Ring ring = Ring::format(arena.control(), config);
  std::vector<int> users(8);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        const int extent = ring.acquire_extent();
        EXPECT_EQ(++users.at(static_cast<std::size_t>(extent)), 1);  // not atomic: a race detector sees a double use
        --users.at(static_cast<std::size_t>(extent));
        ring.release_extent(extent);
      }
    });
  }
}

}  // namespace
}  // namespace infeed
