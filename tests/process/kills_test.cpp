// SIGKILL of workers: at every named step of the claim protocol, at random, and once too often.

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string_view>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "process/mortal.h"
#include "process/team.h"
#include "support/sanitizers.h"

namespace infeed::testing {
namespace {

constexpr int kDeathsAtStep = kSanitized ? 1 : 3;
constexpr int kRandomKills = kSanitized ? 20 : 200;

const TestDataset kData({.size = 160, .sleep_us = 50});
const TestDataset kUndisturbed({.size = 160});

void make_mortal(LoaderOptions& options) {
  if (options.worker_kind == WorkerKind::kSpawn)
    options.worker_init_name = "mortal";
  else
    options.worker_init = become_mortal;
}

class KillAtStep : public ::testing::TestWithParam<std::tuple<RingStep, Team>> {
 protected:
  KillAtStep() { set_log_level(LogLevel::kError); }
  ~KillAtStep() override { EXPECT_TRUE(children().empty()); }
};

TEST_P(KillAtStep, ChangesNoBatch) {
  const auto& [step, team] = GetParam();
  const Deaths deaths(step, kDeathsAtStep);
  LoaderOptions options = team.options();
  options.max_restarts = kDeathsAtStep;
  make_mortal(options);
  Loader loader(kData, std::move(options));
  for (std::uint64_t epoch = 0; loader.stats().restarts < kDeathsAtStep; ++epoch) {
    ASSERT_EQ(rest_of_epoch(loader), undisturbed(kUndisturbed, epoch)) << "epoch " << epoch;
    ASSERT_LT(epoch, 1000U) << "nobody dies: is this program's ring the one with hooks (tests/process/CMakeLists.txt)?";
  }
}

// kBeforeReturn is not here: a loader arms no more than there are extents. tests/ring/steps_test.cpp has it.
std::vector<std::tuple<RingStep, Team>> steps() {
  std::vector<std::tuple<RingStep, Team>> all;
  for (const Team& team : teams()) {
    for (const RingStep step : {RingStep::kBeforeCas, RingStep::kAfterCas, RingStep::kAfterTodo, RingStep::kAfterBind,
                                RingStep::kMidRows, RingStep::kBeforeDone, RingStep::kAfterDone, RingStep::kBeforeRing,
                                RingStep::kBeforeSleep, RingStep::kWoken}) {
      const bool binds = team.filling == Filling::kWhole;  // else the consumer gives the extent
      if (step != RingStep::kAfterBind || binds) all.emplace_back(step, team);
    }
  }
  return all;
}

std::string step_name(RingStep step) {
  constexpr std::array names{"BeforeCas",  "AfterCas",  "AfterTodo",  "AfterBind",   "BeforeReturn", "MidRows",
                             "BeforeDone", "AfterDone", "BeforeRing", "BeforeSleep", "Woken"};
  return names.at(static_cast<std::size_t>(step));
}

INSTANTIATE_TEST_SUITE_P(Steps, KillAtStep, ::testing::ValuesIn(steps()), [](const auto& test) {
  return step_name(std::get<0>(test.param)) + std::get<1>(test.param).name();
});

class KillTest : public ::testing::TestWithParam<Team> {
 protected:
  // Restarts are counted by what is logged: stats() reads the processes' memory, and a slow consumer sees no death.
  KillTest() {
    set_log_level(LogLevel::kWarning);
    set_log_sink([this](LogLevel, std::string_view text) { restarts += text.find("; restart ") != text.npos ? 1 : 0; });
  }
  ~KillTest() override {
    set_log_sink({});
    EXPECT_TRUE(children().empty());
  }
  static LoaderOptions options(int max_restarts) {
    LoaderOptions made = GetParam().options();
    made.max_restarts = max_restarts;
    return made;
  }
  // Kills a worker if the one before was replaced.
  void kill_one(const Loader& loader) {
    if (killed == kRandomKills || restarts < killed) return;
    ::usleep(static_cast<useconds_t>(random() % 1000));
    ::kill(pid_of(loader, random() % 2), SIGKILL);
    ++killed;
  }

  std::minstd_rand random{7};
  int restarts = 0;
  int killed = 0;
};

TEST_P(KillTest, TwoHundredKillsAtRandomChangeNoBatch) {
  const TestDataset data({.size = 4'000, .sleep_us = 50});
  const TestDataset calm({.size = 4'000});
  Loader loader(data, options(kRandomKills));
  for (std::uint64_t epoch = 0; restarts < kRandomKills; ++epoch) {
    std::vector<std::uint64_t> sums;
    while (auto batch = loader.next()) {
      sums.push_back(checksum(*batch));
      kill_one(loader);
    }
    ASSERT_EQ(sums, undisturbed(calm, epoch)) << "epoch " << epoch;
  }
}

TEST_P(KillTest, PastMaxRestartsTheErrorNamesWorkerPidSignalSampleAndBatch) {
  const TestDataset deadly({.size = 40, .signals_at = 20, .signal = SIGKILL});
  LoaderOptions one = options(0);
  one.num_workers = 1;
  one.shuffle = false;
  Loader loader(deadly, std::move(one));
  const std::string who = "worker 0 (pid " + std::to_string(pid_of(loader, 0)) + ") was killed by SIGKILL";
  const std::string message = error_of_epoch<WorkerError>(loader);
  EXPECT_TRUE(has(message, who + " at sample 20 of batch 2; restarts used: 0 of 0.")) << message;
  EXPECT_EQ(error_of_epoch<WorkerError>(loader), message);
}

TEST_P(KillTest, ASampleThatKillsEveryWorkerEndsAfterMaxRestarts) {
  const TestDataset deadly({.size = 40, .signals_at = 20, .signal = SIGTERM});
  LoaderOptions two = options(3);
  two.shuffle = false;
  Loader loader(deadly, std::move(two));
  const std::string message = error_of_epoch<WorkerError>(loader);
  EXPECT_TRUE(has(message, "was killed by SIGTERM at sample 20 of batch 2; restarts used: 3 of 3.")) << message;
}

INSTANTIATE_TEST_SUITE_P(Teams, KillTest, ::testing::ValuesIn(teams()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace infeed::testing
