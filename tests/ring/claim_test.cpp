#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <set>

#include "infeed/base/error.h"
#include "ring/owner.h"
#include "ring/rig.h"

namespace infeed {
namespace {

class ClaimTest : public RingRig {};

TEST_F(ClaimTest, AnEmptyRingHasNoWork) { EXPECT_FALSE(ring.claim(0).has_value()); }

TEST_F(ClaimTest, HandsOutEveryRowOnceAndInOrder) {
  const int slot = arm(200);
  int next = 0;
  while (auto claim = ring.claim(0)) {
    EXPECT_EQ(claim->first_row, next);
    next += claim->rows;
    ring.publish(*claim, -1);
  }
  EXPECT_EQ(next, 200);
  EXPECT_TRUE(ring.ready(slot));
}

TEST_F(ClaimTest, CutsABatchIntoAtMost64Runs) {
  for (const int rows : {1, 63, 64, 65, 128, 129, 256}) {
    const int slot = arm(rows);
    int runs = 0;
    for (; auto claim = ring.claim(0); ++runs) ring.publish(*claim, -1);
    EXPECT_LE(runs, kMaxRuns);
    EXPECT_EQ(runs, (rows + (rows + 63) / 64 - 1) / ((rows + 63) / 64)) << rows;
    ring.release_extent(ring.take(slot).extent);
  }
}

TEST_F(ClaimTest, CutsRunsOfTheRowsAskedFor) {
  const std::vector<std::int64_t> indices(30);
  ring.arm({.seq = ++seq, .indices = indices, .rows = 30, .rows_per_run = 4, .extent = ring.acquire_extent()});
  std::vector<int> rows;
  while (auto claim = ring.claim(0)) {
    rows.push_back(claim->rows);
    ring.publish(*claim, -1);
  }
  EXPECT_EQ(rows, (std::vector<int>{4, 4, 4, 4, 4, 4, 4, 2}));
}

TEST_F(ClaimTest, TellsWhatTheOrderSaid) {
  const int slot = arm(2);
  const auto claim = ring.claim(3);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->slot, slot);
  EXPECT_EQ(claim->claimant, 3);
  EXPECT_EQ(claim->seq, 1u);
  EXPECT_EQ(claim->epoch, 7u);
  EXPECT_EQ(claim->number, 0u);
  EXPECT_EQ(claim->extent, 0);
  ASSERT_EQ(claim->indices.size(), 1u);
  EXPECT_EQ(claim->indices[0], 1000);
}

TEST_F(ClaimTest, TellsAStreamItsShardAndRow) {
  const int slot =
      ring.arm({.seq = ++seq, .rows = 8, .shard = 2, .num_shards = 5, .first_row = 40, .whole = true, .assigned = 1});
  const auto claim = ring.claim(1);
  ASSERT_TRUE(claim);
  EXPECT_EQ(claim->shard, 2);
  EXPECT_EQ(claim->num_shards, 5);
  EXPECT_EQ(claim->stream_row, 40);
  EXPECT_TRUE(claim->indices.empty());
  ring.set_result(*claim, 3, 100, true);
  ring.publish(*claim, -1);
  const auto result = ring.take(slot);
  EXPECT_EQ(result.rows, 3);
  EXPECT_EQ(result.nbytes, 100u);
  EXPECT_TRUE(result.shard_ended);
}

TEST_F(ClaimTest, TakesTheOldestBatchFirst) {
  arm(1);
  arm(1);
  EXPECT_EQ(ring.claim(0)->seq, 1u);
  EXPECT_EQ(ring.claim(1)->seq, 2u);
}

TEST_F(ClaimTest, ABatchIsReadyOnlyWhenEveryRunIs) {
  const int slot = arm(2);
  const auto first = ring.claim(0), second = ring.claim(1);
  ring.publish(*second, -1);
  EXPECT_FALSE(ring.ready(slot));
  ring.publish(*first, -1);
  EXPECT_TRUE(ring.ready(slot));
}

TEST_F(ClaimTest, BatchesBecomeReadyInAnyOrder) {
  const int first = arm(1), second = arm(1);
  const auto early = ring.claim(0);
  fill(1);
  EXPECT_FALSE(ring.ready(first));
  EXPECT_TRUE(ring.ready(second));
  EXPECT_EQ(ring.take(second).seq, 2u);
  ring.publish(*early, -1);
  EXPECT_EQ(ring.take(first).seq, 1u);
}

TEST_F(ClaimTest, AStaleTodoBitDoesNotHideTheNextSlot) {
  const int slot = arm(1);
  arm(1);
  (void)ring.claim(0);
  RingBytes(arena.control(), ring.config()).head(slot).todo = 1;  // as if its holder had stopped before clearing it
  EXPECT_EQ(ring.claim(1)->seq, 2u);
}

TEST_F(ClaimTest, AnOwnerWordOfAnOlderBatchIsNotClaimable) {
  const int slot = arm(1);
  RingBytes(arena.control(), ring.config()).owner(slot, 0) = free_word(99);
  EXPECT_FALSE(ring.claim(0).has_value());
}

TEST_F(ClaimTest, AnAssignedRunWaitsForItsClaimant) {
  arm_whole(5, 2);
  EXPECT_FALSE(ring.claim(1).has_value());
  EXPECT_TRUE(ring.claim(2).has_value());
}

TEST_F(ClaimTest, AnAssignmentMovesUntilItIsStarted) {
  arm_whole(5, 2);
  arm_whole(5, 2);
  ASSERT_TRUE(ring.claim(2));
  EXPECT_EQ(ring.reassign(2, 1), 1);
  EXPECT_FALSE(ring.claim(2).has_value());
  EXPECT_EQ(ring.claim(1)->seq, 2u);
}

TEST_F(ClaimTest, AnAssignmentCanBecomeAnyones) {
  arm_whole(5, 2);
  EXPECT_EQ(ring.reassign(2, kAnyone), 1);
  EXPECT_TRUE(ring.claim(0).has_value());
}

TEST_F(ClaimTest, ASlotIsUsedAgainAfterItWasTaken) {
  for (int round = 0; round < 20; ++round) {
    const int slot = arm(64);
    EXPECT_EQ(slot, 0);
    EXPECT_EQ(fill(round % 4), 64);
    const auto result = ring.take(slot);
    EXPECT_EQ(result.indices, indices_of(seq, 64));
    ring.release_extent(result.extent);
  }
}

TEST_F(ClaimTest, ArmSaysWhenNoSlotIsFree) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(arm(1), i);
  EXPECT_EQ(arm_whole(1), -1);
}

TEST_F(ClaimTest, ArmRefusesAnOrderThatCannotBe) {
  EXPECT_THROW(ring.arm({.seq = 0, .rows = 1, .whole = true}), Error);
  EXPECT_THROW(ring.arm({.seq = 1, .rows = 257, .whole = true}), Error);
  EXPECT_THROW(ring.arm({.seq = 1, .rows = 0, .whole = true}), Error);
  EXPECT_THROW(ring.arm({.seq = 1, .rows = 1}), Error);
  EXPECT_THROW(ring.arm({.seq = 1, .rows = 1, .whole = true, .assigned = 4}), Error);
  EXPECT_THROW(ring.arm({.seq = kMaxSeq + 1, .rows = 1, .whole = true}), Error);
}

TEST_F(ClaimTest, ArmRefusesABatchNumberThatWasUsed) {
  arm_whole(1);
  EXPECT_THROW(ring.arm({.seq = 1, .rows = 1, .whole = true}), Error);
}

TEST_F(ClaimTest, TakeRefusesABatchThatIsNotReady) { EXPECT_THROW(ring.take(arm(1)), Error); }

TEST_F(ClaimTest, CancelEndsWhatNobodyStarted) {
  const int slot = arm(64);
  EXPECT_TRUE(ring.cancel(slot));
  EXPECT_FALSE(ring.claim(0).has_value());
  EXPECT_EQ(ring.take(slot).extent, 0);
}

TEST_F(ClaimTest, ACancelledBatchDrainsWithItsLastHolder) {
  const int slot = arm(64);
  const auto held = ring.claim(0);
  EXPECT_FALSE(ring.cancel(slot));
  EXPECT_FALSE(ring.claim(1).has_value());
  ring.publish(*held, -1);
  EXPECT_TRUE(ring.ready(slot));
  EXPECT_EQ(ring.take(slot).indices, indices_of(1, 64));
}

TEST_F(ClaimTest, CancelWorksOnAssignmentsAndTwice) {
  const int slot = arm_whole(5, 1);
  EXPECT_TRUE(ring.cancel(slot));
  EXPECT_TRUE(ring.cancel(slot));
  EXPECT_EQ(ring.take(slot).extent, kNoExtent);
}

TEST_F(ClaimTest, CountsTheRunsThatAreOpen) {
  const int slot = arm(10);
  arm_whole(5, 1);
  EXPECT_EQ(ring.open_runs(), 11);
  (void)ring.claim(0);
  EXPECT_EQ(ring.open_runs(), 10);
  ring.cancel(slot);
  EXPECT_EQ(ring.open_runs(), 1);
}

TEST_F(ClaimTest, ReplacedIndicesAreTold) {
  const int slot = arm(2);
  ring.claim(0)->indices[0] = 5;
  ring.publish(Claim{.slot = slot, .run = 0, .seq = 1}, -1);
  fill();
  EXPECT_EQ(ring.take(slot).indices, (std::vector<std::int64_t>{5, 1001}));
}

TEST_F(ClaimTest, WritesTheEventfdOnlyIfTheConsumerSleepsAndTheBatchIsFull) {
  const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  const auto rung = [event] {
    std::uint64_t count = 0;
    return read(event, &count, sizeof count) == sizeof count;
  };
  arm(1);
  ring.publish(*ring.claim(0), event);
  EXPECT_FALSE(rung());
  ring.begin_wait();
  arm(2);
  ring.publish(*ring.claim(0), event);
  EXPECT_FALSE(rung());
  ring.publish(*ring.claim(0), event);
  EXPECT_TRUE(rung());
  close(event);
}

TEST_F(ClaimTest, AClaimantIsAskedToLeaveAndTakenBack) {
  ring.retire(1, true);
  EXPECT_TRUE(ring.retired(1));
  EXPECT_FALSE(ring.retired(0));
  ring.retire(1, false);
  EXPECT_FALSE(ring.retired(1));
}

TEST_F(ClaimTest, AStopIsSeenAndRung) {
  const auto seen = ring.bell();
  ring.request_stop();
  EXPECT_TRUE(ring.stopping());
  EXPECT_NE(ring.bell(), seen);
}

}  // namespace
}  // namespace infeed
