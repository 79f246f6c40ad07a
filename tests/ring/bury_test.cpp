#include "ring/owner.h"
#include "ring/rig.h"

namespace infeed {
namespace {

class BuryTest : public RingRig {
 protected:
  RingBytes bytes{arena.control(), ring.config()};
};

TEST_F(BuryTest, GivesUnfinishedRunsBackOnceEach) {
  const int slot = arm(3);
  (void)ring.claim(0);
  (void)ring.claim(0);
  EXPECT_EQ(ring.bury(0), 2);
  EXPECT_EQ(ring.bury(0), 0);
  EXPECT_EQ(fill(1), 3);
  EXPECT_TRUE(ring.ready(slot));
}

TEST_F(BuryTest, KeepsWhatTheDeadOnePublished) {
  arm(2);
  ring.publish(*ring.claim(0), -1);
  (void)ring.claim(0);
  EXPECT_EQ(ring.bury(0), 1);
  EXPECT_EQ(fill(1), 1);
}

TEST_F(BuryTest, LeavesTheClaimsOfOthersAlone) {
  arm(2);
  (void)ring.claim(0);
  (void)ring.claim(1);
  EXPECT_EQ(ring.bury(0), 1);
  EXPECT_EQ(fill(2), 1);
}

TEST_F(BuryTest, FindsWorkAgainThoughItsTodoBitWasNotCleared) {
  const int slot = arm(1);
  bytes.owner(slot, 0) = held_word(seq, 0);  // died right after its CAS
  EXPECT_EQ(ring.bury(0), 1);
  EXPECT_EQ(fill(1), 1);
}

TEST_F(BuryTest, AnAssignedRunWaitsForTheReplacement) {
  arm_whole(5, 2);
  (void)ring.claim(2);
  EXPECT_EQ(ring.bury(2), 1);
  EXPECT_FALSE(ring.claim(1).has_value());
  EXPECT_TRUE(ring.claim(2).has_value());
}

TEST_F(BuryTest, FreesTheExtentThatTheDeadOneBound) {
  arm_whole(5);
  (void)ring.claim(0);
  ring.bury(0);
  EXPECT_EQ(ring.free_extents(), 4);
  EXPECT_EQ(ring.claim(1)->extent, 0);
}

TEST_F(BuryTest, FreesAnExtentThatTheSlotDoesNotNameYet) {
  const int slot = arm_whole(5);
  (void)ring.claim(0);
  bytes.head(slot).extent = kNoExtent;  // died between binding and telling
  ring.bury(0);
  EXPECT_EQ(ring.free_extents(), 4);
}

TEST_F(BuryTest, KeepsTheExtentOfACooperativeBatch) {
  const int slot = arm(2);
  (void)ring.claim(0);
  ring.bury(0);
  EXPECT_FALSE(ring.extent_is_free(0));
  fill(1);
  EXPECT_EQ(ring.take(slot).extent, 0);
}

TEST_F(BuryTest, KeepsTheExtentOfAFinishedBatch) {
  const int slot = arm_whole(5);
  ring.publish(*ring.claim(0), -1);
  EXPECT_EQ(ring.bury(0), 0);
  EXPECT_EQ(ring.take(slot).extent, 0);
}

TEST_F(BuryTest, ADrainingBatchEndsWithItsDeadHolder) {
  const int slot = arm_whole(5);
  (void)ring.claim(0);
  EXPECT_FALSE(ring.cancel(slot));
  EXPECT_EQ(ring.bury(0), 1);
  EXPECT_TRUE(ring.ready(slot));
  EXPECT_EQ(ring.take(slot).extent, kNoExtent);
  EXPECT_EQ(ring.free_extents(), 4);
}

TEST_F(BuryTest, EndsARunThatWasGivenBackIntoADrainingBatch) {
  const int slot = arm_whole(5);
  (void)ring.claim(0);
  ring.cancel(slot);
  bytes.owner(slot, 0) = free_word(seq);  // gave it back, died before it looked whether the slot drains
  ring.bury(0);
  EXPECT_TRUE(ring.ready(slot));
}

TEST_F(BuryTest, ForgetsThatTheDeadOneSlept) {
  bytes.header().bell.sleepers[0] = 0b0110;
  ring.bury(1);
  EXPECT_EQ(bytes.header().bell.sleepers[0], 0b0100u);
}

TEST_F(BuryTest, ReplacedIndicesAndReportsOfTheDeadOneAreUndone) {
  const int slot = arm(2);
  const auto claim = ring.claim(0);
  claim->indices[0] = 5;
  ring.add_report(*claim, RowFault::kReplaced, 0, 1000, 1, "gone");
  ring.bury(0);
  fill(1);
  const auto result = ring.take(slot);
  EXPECT_EQ(result.indices, indices_of(1, 2));
  EXPECT_TRUE(result.reports.empty());
}

}  // namespace
}  // namespace infeed
