#include "loader/turn_clock.h"

#include <gtest/gtest.h>

namespace infeed {
namespace {

using namespace std::chrono_literals;

/// Turns at moments that the test sets.
class TurnClockTest : public ::testing::Test {
 protected:
  void turn(std::chrono::milliseconds trainer, std::chrono::milliseconds wait, std::chrono::milliseconds sampler = 0ms,
            std::chrono::milliseconds rest = 0ms) {
    now += trainer;
    clock.called(now);
    clock.wait_began(now);
    now += wait;
    clock.waited(wait);
    now += sampler;
    clock.sampled(sampler);
    now += rest;
    clock.returned(true, now);
  }
  [[nodiscard]] LoaderStats stats() const {
    LoaderStats stats;
    clock.fill(stats, now);
    return stats;
  }
  TurnClock clock;
  TurnClock::Clock::time_point now{1h};
};

TEST_F(TurnClockTest, ItsFourPartsAreTheWholeTime) {
  turn(7ms, 1ms);  // before the first call nothing counts
  turn(10ms, 5ms, 2ms, 3ms);
  EXPECT_NEAR(stats().elapsed_s, 0.021, 1e-9);
  EXPECT_NEAR(stats().trainer_s, 0.010, 1e-9);
  EXPECT_NEAR(stats().wait_s, 0.006, 1e-9);
  EXPECT_NEAR(stats().sampler_s, 0.002, 1e-9);
  EXPECT_NEAR(stats().hand_over_s, 0.003, 1e-9);
}

TEST_F(TurnClockTest, EvenWaitsAreNoBurst) {
  for (int i = 0; i < 100; ++i) turn(1ms, 4ms);
  EXPECT_NEAR(stats().worst_tenth_share, 0.1, 0.01);
  EXPECT_EQ(stats().waits, 100u);
}

TEST_F(TurnClockTest, OneLateBatchInTwentyIsAllThatWasLost) {
  for (int i = 0; i < 100; ++i) turn(1ms, i % 20 == 0 ? 40ms : 0ms);
  EXPECT_NEAR(stats().worst_tenth_share, 1.0, 1e-9);
  EXPECT_NEAR(stats().longest_wait_ms, 40, 1e-6);
}

TEST_F(TurnClockTest, AWaitThatIsGoingOnCounts) {
  turn(0ms, 0ms);
  clock.called(now);
  clock.wait_began(now);
  now += 50ms;
  EXPECT_NEAR(stats().starved_share, 1.0, 1e-9);
  EXPECT_NEAR(stats().elapsed_s, 0.05, 1e-9);
}

TEST_F(TurnClockTest, ACallThatThrewHasNoBatchToBeLate) {
  clock.called(now);
  now += 30ms;
  clock.returned(false, now);
  EXPECT_NEAR(stats().elapsed_s, 0.03, 1e-9);
  EXPECT_EQ(stats().longest_wait_ms, 0);
}

TEST_F(TurnClockTest, ResetCountsAnew) {
  turn(10ms, 10ms);
  clock.reset();
  EXPECT_EQ(stats().elapsed_s, 0);
  turn(10ms, 1ms);
  EXPECT_NEAR(stats().elapsed_s, 0.001, 1e-9);
}

}  // namespace
}  // namespace infeed
