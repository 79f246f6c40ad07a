#include <set>

#include "ring/owner.h"
#include "ring/rig.h"

namespace infeed {
namespace {

class ExtentsTest : public RingRig {
 protected:
  RingBytes bytes{arena.control(), ring.config()};
};

TEST_F(ExtentsTest, TheLowestFreeOneComesFirst) {
  EXPECT_EQ(ring.acquire_extent(), 0);
  EXPECT_EQ(ring.acquire_extent(), 1);
  EXPECT_EQ(ring.acquire_extent(), 2);
  ring.release_extent(1);
  EXPECT_EQ(ring.acquire_extent(), 1);
}

TEST_F(ExtentsTest, SaysWhenAllAreTaken) {
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ring.acquire_extent(), i);
  EXPECT_EQ(ring.acquire_extent(), kNoExtent);
  EXPECT_EQ(ring.free_extents(), 0);
}

TEST_F(ExtentsTest, CountsFreeOnes) {
  EXPECT_EQ(ring.free_extents(), 4);
  ring.acquire_extent();
  ring.acquire_extent();
  ring.release_extent(0);
  EXPECT_EQ(ring.free_extents(), 3);
  EXPECT_TRUE(ring.extent_is_free(0));
  EXPECT_FALSE(ring.extent_is_free(1));
}

TEST_F(ExtentsTest, ReleasingTwiceOrOutOfRangeDoesNothing) {
  ring.release_extent(ring.acquire_extent());
  ring.release_extent(0);
  ring.release_extent(-1);
  ring.release_extent(4);
  EXPECT_FALSE(ring.extent_is_free(4));
  EXPECT_EQ(ring.free_extents(), 4);
}

TEST_F(ExtentsTest, AWholeRunBindsTheLowestWhenItStarts) {
  const int slot = arm_whole(5);
  EXPECT_EQ(ring.free_extents(), 4);
  const auto claim = ring.claim(0);
  EXPECT_EQ(claim->extent, 0);
  EXPECT_FALSE(ring.extent_is_free(0));
  ring.publish(*claim, -1);
  EXPECT_EQ(ring.take(slot).extent, 0);
  EXPECT_FALSE(ring.extent_is_free(0));
  ring.release_extent(0);
  EXPECT_TRUE(ring.extent_is_free(0));
}

TEST_F(ExtentsTest, TheConsumerCannotReleaseWhatAClaimantFills) {
  arm_whole(5);
  (void)ring.claim(0);
  ring.release_extent(0);
  EXPECT_FALSE(ring.extent_is_free(0));
}

TEST_F(ExtentsTest, AClaimantWithoutAnExtentGivesTheRunBack) {
  for (int i = 0; i < 4; ++i) ring.acquire_extent();
  arm_whole(5, 1);
  EXPECT_FALSE(ring.claim(1).has_value());
  const auto seen = ring.bell();
  ring.release_extent(2);
  EXPECT_NE(ring.bell(), seen) << "the release must wake who found none";
  EXPECT_EQ(ring.claim(1)->extent, 2);
}

TEST_F(ExtentsTest, AClaimantWithoutAnExtentStillFindsLaterWork) {
  const int mine = ring.acquire_extent();
  for (int i = 0; i < 3; ++i) ring.acquire_extent();
  arm_whole(5);
  ring.arm({.seq = ++seq, .rows = 1, .extent = mine});
  EXPECT_EQ(ring.claim(0)->seq, 2u);
}

TEST_F(ExtentsTest, AReleaseRingsNobodyWhoDidNotAsk) {
  const auto seen = ring.bell();
  ring.release_extent(ring.acquire_extent());
  EXPECT_EQ(ring.bell(), seen);
}

TEST_F(ExtentsTest, AForgedExtentOfASlotIsNotBelieved) {
  const int slot = arm_whole(5);
  ring.publish(*ring.claim(0), -1);
  bytes.head(slot).extent = 1 << 20;
  EXPECT_EQ(ring.take(slot).extent, kNoExtent);
  const int second = arm_whole(5);
  ring.publish(*ring.claim(0), -1);
  bytes.head(second).extent = 3;  // in range, but not bound to this batch
  EXPECT_EQ(ring.take(second).extent, kNoExtent);
}

TEST_F(ExtentsTest, AForgedRowCountIsCut) {
  const int slot = arm_whole(5);
  const auto claim = ring.claim(0);
  ring.set_result(*claim, 1 << 30, 0, false);
  ring.publish(*claim, -1);
  EXPECT_EQ(ring.take(slot).rows, 5);
}

}  // namespace
}  // namespace infeed
