#include "ring/doorbell.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace infeed {
namespace {

struct DoorbellTest : public ::testing::Test {
  [[nodiscard]] bool sleeps(int sleeper) const {
    return (words.sleepers[sleeper / 64].load() >> (sleeper % 64) & 1) != 0;
  }
  void wait_until_asleep(int sleeper) const {
    while (!sleeps(sleeper)) std::this_thread::yield();
  }
  BellWords words{};
  Doorbell bell{words};
};

TEST_F(DoorbellTest, ReturnsAtOnceIfItRangMeanwhile) {
  const auto seen = bell.value();
  bell.ring(1);
  EXPECT_TRUE(bell.wait(0, seen, 0, 60'000));
}

TEST_F(DoorbellTest, GivesUpAfterTheTimeLimitAndLeavesNoBit) {
  EXPECT_FALSE(bell.wait(3, bell.value(), 5, 2));
  EXPECT_FALSE(sleeps(3));
}

TEST_F(DoorbellTest, DoesNotSleepWithoutTime) { EXPECT_FALSE(bell.wait(3, bell.value(), 0, 0)); }

TEST_F(DoorbellTest, WakesASleeper) {
  std::thread sleeper([this, seen = bell.value()] {
    while (!bell.wait(200, seen, 0, 60'000)) {
    }
  });
  wait_until_asleep(200);
  bell.ring(1);
  sleeper.join();
  EXPECT_FALSE(sleeps(200));
}

TEST_F(DoorbellTest, RingsAll) {
  std::vector<std::thread> sleepers;
  for (int i = 0; i < 8; ++i) {
    sleepers.emplace_back([this, i, seen = bell.value()] {
      while (!bell.wait(i * 32, seen, 0, 60'000)) {
      }
    });
  }
  for (int i = 0; i < 8; ++i) wait_until_asleep(i * 32);
  bell.ring_all();
  for (auto& sleeper : sleepers) sleeper.join();
}

TEST_F(DoorbellTest, RingsOneByName) {
  std::thread sleeper([this, seen = bell.value()] {
    while (!bell.wait(77, seen, 0, 60'000)) {
    }
  });
  wait_until_asleep(77);
  bell.ring_one(77);
  sleeper.join();
}

TEST_F(DoorbellTest, ForgetsADeadSleeperOnly) {
  words.sleepers[1] = 0b11;
  bell.forget(64);
  EXPECT_FALSE(sleeps(64));
  EXPECT_TRUE(sleeps(65));
}

TEST_F(DoorbellTest, LosesNoWakeUpBetweenTwoThatRingEachOther) {
  BellWords other_words{};
  Doorbell other(other_words);
  constexpr std::uint32_t kRounds = 3000;
  std::thread partner([&] {
    for (std::uint32_t i = 0; i < kRounds; ++i) {
      while (bell.value() == i) bell.wait(1, i, static_cast<int>(i % 3), 60'000);
      other.ring(1);
    }
  });
  for (std::uint32_t i = 0; i < kRounds; ++i) {
    bell.ring(1);
    while (other.value() == i) other.wait(2, i, 0, 60'000);
  }
  partner.join();
}

}  // namespace
}  // namespace infeed
