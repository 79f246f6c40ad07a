#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <thread>

#include "ring/feed.h"
#include "ring/rig.h"
#include "ring/steps.h"
#include "support/sanitizers.h"

namespace infeed {
namespace {

constexpr int kKills = testing::kAddressSanitized ? 25 : 150;
constexpr int kDeaths = testing::kAddressSanitized ? 3 : 10;

/// In a worker process: what to do to itself when it reaches a step for the n-th time.
struct Fate {
  RingStep step = RingStep::kBeforeCas;
  int countdown = 0;  ///< 0: never
  int signal = SIGKILL;
};
Fate fate_of_process;

void meet_fate(RingStep step) {
  if (step == fate_of_process.step && fate_of_process.countdown > 0 && --fate_of_process.countdown == 0)
    raise(fate_of_process.signal);
}

/// Forked workers of a feed; the dead are buried and replaced.
class Workers {
 public:
  Workers(Feed& feed, int num_workers) : feed_(feed), pids_(static_cast<std::size_t>(num_workers)) {}
  ~Workers() {
    feed_.ring.request_stop();
    for (const pid_t pid : pids_) {
      kill(pid, SIGCONT);
      waitpid(pid, nullptr, 0);
    }
  }

  void start(int id, const Fate& fate = {}) {
    const pid_t pid = fork();
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      fate_of_process = fate;
      ring_step_hook = meet_fate;
      claim_until_stopped(feed_.ring, feed_.arena, id, feed_.event);
      _exit(0);
    }
    pids_[static_cast<std::size_t>(id)] = pid;
  }
  void start_all(const std::function<Fate()>& next_fate = [] { return Fate{}; }) {
    next_fate_ = next_fate;
    for (int id = 0; id < static_cast<int>(pids_.size()); ++id) start(id, next_fate_());
  }

  /// Kills one without saying so.
  void kill_one(int id) { kill(pids_[static_cast<std::size_t>(id)], SIGKILL); }
  [[nodiscard]] pid_t pid(int id) const { return pids_[static_cast<std::size_t>(id)]; }

  void look() {
    for (int id = 0; id < static_cast<int>(pids_.size()); ++id) {
      if (waitpid(pids_[static_cast<std::size_t>(id)], nullptr, WNOHANG) <= 0) continue;
      feed_.ring.bury(id);
      ++buried;
      start(id, next_fate_());
      feed_.ring.ring_workers(true);
    }
  }
  int buried = 0;

 private:
  Feed& feed_;
  std::vector<pid_t> pids_;
  std::function<Fate()> next_fate_;
};

/// Random SIGKILLs until `kills` workers were buried.
void run_with_random_kills(const FeedOptions& options, int kills) {
  Feed feed(options);
  Workers workers(feed, options.num_workers);
  workers.start_all();
  while (workers.buried < kills) {
    feed.run(feed.delivered + 10, [&] {
      if (feed.chance(0.2)) workers.kill_one(feed.below(options.num_workers));
      workers.look();
    });
  }
  feed.run(feed.delivered + 20, [&] { workers.look(); });
  EXPECT_EQ(feed.ring.free_extents(), options.num_extents);
}

TEST(RingProcessesTest, CooperativeBatchesSurviveRandomKills) {
  run_with_random_kills({.rows = 2000, .cancel_chance = 0.1}, kKills);
}

TEST(RingProcessesTest, WholeBatchesSurviveRandomKills) {
  run_with_random_kills({.num_extents = 8, .rows = 2000, .whole = true, .cancel_chance = 0.1}, kKills);
}

TEST(RingProcessesTest, AssignedBatchesSurviveRandomKills) {
  run_with_random_kills({.depth = 3, .num_extents = 9, .rows = 2000, .whole = true, .assign = true}, kKills);
}

class KillAtStep : public ::testing::TestWithParam<RingStep> {
 protected:
  /// Workers kill themselves at the step, kDeaths times in all.
  static int run(const FeedOptions& options) {
    Feed feed(options);
    Workers workers(feed, options.num_workers);
    int fates = kDeaths;
    workers.start_all([&] { return Fate{.step = GetParam(), .countdown = fates-- > 0 ? 1 + feed.below(6) : 0}; });
    while (workers.buried < kDeaths) feed.run(feed.delivered + 50, [&] { workers.look(); });
    feed.run(feed.delivered + 20, [&] { workers.look(); });
    EXPECT_EQ(feed.ring.free_extents(), options.num_extents);
    return workers.buried;
  }
};

TEST_P(KillAtStep, LosesNoCooperativeRow) { EXPECT_EQ(run({.cancel_chance = 0.05}), kDeaths); }

TEST_P(KillAtStep, LosesNoWholeBatchAndNoExtent) {
  EXPECT_EQ(run({.num_extents = 8, .whole = true, .cancel_chance = 0.05}), kDeaths);
}

INSTANTIATE_TEST_SUITE_P(Steps, KillAtStep,
                         ::testing::Values(RingStep::kBeforeCas, RingStep::kAfterCas, RingStep::kAfterTodo,
                                           RingStep::kMidRows, RingStep::kBeforeDone, RingStep::kAfterDone,
                                           RingStep::kBeforeRing, RingStep::kBeforeSleep, RingStep::kWoken));

TEST(RingProcessesTest, AWorkerThatStopsBeforeItRingsDoesNotStopTheConsumer) {
  Feed feed({.num_workers = 2});
  Workers workers(feed, 2);
  workers.start(0, {.step = RingStep::kAfterDone, .countdown = 1, .signal = SIGSTOP});
  workers.start(1);
  feed.run(50, [] {});
  EXPECT_EQ(feed.delivered, 50);
}

/// Its own batch waits for a stopped worker; what comes later does not.
TEST(RingProcessesTest, AStoppedWorkerHoldsUpOnlyItsOwnBatch) {
  Feed feed({.num_workers = 2});
  Workers workers(feed, 2);
  workers.start(0, {.step = RingStep::kAfterTodo, .countdown = 1, .signal = SIGSTOP});
  const int held = feed.ring.arm({.seq = 1 << 20, .rows = 1, .extent = feed.ring.acquire_extent()});
  feed.ring.ring_workers(true);
  waitpid(workers.pid(0), nullptr, WUNTRACED);
  workers.start(1);
  for (std::uint64_t seq = (1 << 20) + 1; seq < (1 << 20) + 31; ++seq) {
    const int slot = feed.ring.arm({.seq = seq, .rows = 1, .extent = feed.ring.acquire_extent()});
    feed.ring.ring_workers(false, 1);
    while (!feed.ring.ready(slot)) std::this_thread::yield();
    feed.ring.release_extent(feed.ring.take(slot).extent);
  }
  EXPECT_FALSE(feed.ring.ready(held));
  kill(workers.pid(0), SIGCONT);
  while (!feed.ring.ready(held)) std::this_thread::yield();
}

}  // namespace
}  // namespace infeed
