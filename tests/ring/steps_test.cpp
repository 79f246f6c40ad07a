#include "ring/steps.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "ring/feed.h"
#include "ring/rig.h"

namespace infeed {
namespace {

/// A thread that reaches its step for the n-th time stops there for ever: to the ring it is dead.
struct Fate {
  RingStep step;
  int countdown;
  std::atomic<bool> dead = false;
};
thread_local Fate* fate_of_thread = nullptr;

void meet_fate(RingStep step) {
  Fate* fate = fate_of_thread;
  if (fate == nullptr || fate->step != step || --fate->countdown > 0) return;
  fate->dead.store(true, std::memory_order_release);
  for (;;) pause();
}

/// Worker threads that die at `step` until `deaths` have died; the rest live.
class MortalWorkers {
 public:
  MortalWorkers(Feed& feed, RingStep step, int num_workers, int deaths)
      : feed_(feed), step_(step), deaths_left_(deaths), workers_(static_cast<std::size_t>(num_workers)) {
    ring_step_hook = meet_fate;
    for (int i = 0; i < num_workers; ++i) start(i);
  }
  ~MortalWorkers() {
    feed_.ring.request_stop();
    for (Worker& worker : workers_) {
      while (!worker.gone->load() && !worker.fate->dead.load()) std::this_thread::yield();
    }
  }

  /// Buries who died and starts a replacement with the same number.
  void look() {
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!workers_[i].fate->dead.load(std::memory_order_acquire)) continue;
      feed_.ring.bury(static_cast<int>(i));
      ++buried;
      start(static_cast<int>(i));
      feed_.ring.ring_workers(true);
    }
  }
  int buried = 0;

 private:
  struct Worker {
    std::shared_ptr<Fate> fate;
    std::shared_ptr<std::atomic<bool>> gone;
  };

  void start(int id) {
    const bool dies = deaths_left_-- > 0;
    auto fate = std::make_shared<Fate>(step_, dies ? 1 + feed_.below(8) : 1 << 30);
    auto gone = std::make_shared<std::atomic<bool>>(false);
    workers_[static_cast<std::size_t>(id)] = {fate, gone};
    std::thread([&feed = feed_, id, fate, gone] {  // detached: a dead one never ends
      fate_of_thread = fate.get();
      claim_until_stopped(feed.ring, feed.arena, id, feed.event);
      gone->store(true);
    })
        .detach();
  }

  Feed& feed_;
  RingStep step_;
  int deaths_left_;
  std::vector<Worker> workers_;
};

/// Batches until all deaths have happened; returns how many were buried.
int run_with_deaths(RingStep step, const FeedOptions& options, int deaths) {
  Feed feed(options);
  MortalWorkers workers(feed, step, options.num_workers, deaths);
  while (workers.buried < deaths) feed.run(feed.delivered + 100, [&] { workers.look(); });
  feed.run(feed.delivered + 20, [&] { workers.look(); });
  EXPECT_EQ(feed.ring.free_extents(), options.num_extents);
  return workers.buried;
}

class DeathAtStep : public ::testing::TestWithParam<RingStep> {};

TEST_P(DeathAtStep, LosesNoCooperativeRow) {
  if (GetParam() == RingStep::kAfterBind || GetParam() == RingStep::kBeforeReturn)
    GTEST_SKIP() << "the consumer gives the extent";
  EXPECT_EQ(run_with_deaths(GetParam(), {.cancel_chance = 0.05}, 6), 6);
}

TEST_P(DeathAtStep, LosesNoWholeBatchAndNoExtent) {
  FeedOptions options{.num_extents = 8, .whole = true, .cancel_chance = 0.05};
  if (GetParam() == RingStep::kBeforeReturn) {
    options = {
        .depth = 4, .num_extents = 3, .whole = true, .cancel_chance = 0.05, .hold_chance = 0.9, .overcommit = true};
  }
  EXPECT_EQ(run_with_deaths(GetParam(), options, 6), 6);
}

TEST_P(DeathAtStep, LosesNoAssignedBatch) {
  if (GetParam() == RingStep::kBeforeReturn) GTEST_SKIP() << "the consumer never arms more than there are extents";
  EXPECT_EQ(run_with_deaths(GetParam(), {.depth = 3, .num_extents = 9, .whole = true, .assign = true}, 6), 6);
}

Ring* ring_to_cancel = nullptr;

/// The consumer cancels while a claimant that found no extent is about to give its run back.
TEST(RingStepsTest, ARunThatIsGivenBackIntoACancelledBatchEndsIt) {
  Feed feed({.num_extents = 1, .rows = 5});
  ASSERT_EQ(feed.ring.acquire_extent(), 0);
  ASSERT_EQ(feed.ring.arm({.seq = 1, .rows = 5, .whole = true}), 0);
  ring_to_cancel = &feed.ring;
  ring_step_hook = [](RingStep step) {
    if (step == RingStep::kBeforeReturn) ring_to_cancel->cancel(0);
  };
  EXPECT_FALSE(feed.ring.claim(0).has_value());
  ring_step_hook = nullptr;
  EXPECT_TRUE(feed.ring.ready(0));
  EXPECT_EQ(feed.ring.take(0).extent, kNoExtent);
}

std::string step_name(const ::testing::TestParamInfo<RingStep>& step) {
  constexpr std::array names{"BeforeCas",  "AfterCas",  "AfterTodo",  "AfterBind",   "BeforeReturn", "MidRows",
                             "BeforeDone", "AfterDone", "BeforeRing", "BeforeSleep", "Woken"};
  return names.at(static_cast<std::size_t>(step.param));
}

INSTANTIATE_TEST_SUITE_P(Steps, DeathAtStep,
                         ::testing::Values(RingStep::kBeforeCas, RingStep::kAfterCas, RingStep::kAfterTodo,
                                           RingStep::kAfterBind, RingStep::kBeforeReturn, RingStep::kMidRows,
                                           RingStep::kBeforeDone, RingStep::kAfterDone, RingStep::kBeforeRing,
                                           RingStep::kBeforeSleep, RingStep::kWoken),
                         step_name);

}  // namespace
}  // namespace infeed
