// Workers that do not get on: a sample that never ends, a stopped process, a stopped zygote.

#include <gtest/gtest.h>

#include <fstream>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "process/team.h"

namespace infeed::testing {
namespace {

class TimeoutTest : public ::testing::TestWithParam<Team> {
 protected:
  TimeoutTest() { set_log_level(LogLevel::kError); }
  ~TimeoutTest() override { EXPECT_TRUE(children().empty()); }  // a destructor that came to its end, too

  static LoaderOptions options() {
    LoaderOptions made = GetParam().options();
    made.shuffle = false;
    made.timeout_ms = 200;
    return made;
  }
  // The TimeoutError that names `sample`; earlier ones tell of workers that a busy machine has not started yet.
  static std::string timeout_at(Loader& loader, std::int64_t sample) {
    for (;;) {
      const std::string message = error_of_epoch<TimeoutError>(loader);
      if (message.empty() || has(message, "at sample " + std::to_string(sample))) return message;
    }
  }
  static void expect_named(const Loader& loader, const std::string& message) {
    bool named = false;
    for (std::size_t worker = 0; worker < 2; ++worker)
      named = named || has(message, "worker " + std::to_string(worker) + " (pid " +
                                        std::to_string(pid_of(loader, worker)) + ") at sample 20");
    EXPECT_TRUE(named) << message;
    EXPECT_TRUE(has(message, "batch 2 was not ready within timeout_ms 200")) << message;
  }
};

TEST_P(TimeoutTest, ASampleThatNeverEndsIsNamedWithItsWorkerAndProcess) {
  const TestDataset endless({.size = 40, .hangs_at = 20});
  Loader loader(endless, options());
  expect_named(loader, timeout_at(loader, 20));
}

TEST_P(TimeoutTest, AWorkerStoppedInASampleIsNamedAndTheBatchComesWhenItGoesOn) {
  const TestDataset stopping({.size = 40, .signals_at = 20, .signal = SIGSTOP});
  Loader loader(stopping, options());
  expect_named(loader, timeout_at(loader, 20));
  for (std::size_t worker = 0; worker < 2; ++worker) kill(pid_of(loader, worker), SIGCONT);
  EXPECT_EQ(patient_next(loader)->indices()[4], 20);
}

INSTANTIATE_TEST_SUITE_P(Teams, TimeoutTest,
                         ::testing::Values(Team{WorkerKind::kFork, Filling::kCooperative},
                                           Team{WorkerKind::kSpawn, Filling::kWhole}),
                         [](const auto& test) { return test.param.name(); });

pid_t child_named(const std::string& name) {
  for (const pid_t child : children()) {
    std::string comm;
    std::getline(std::ifstream("/proc/" + std::to_string(child) + "/comm") >> std::ws, comm);
    if (comm == name) return child;
  }
  return 0;
}

TEST(ZygoteTimeoutTest, AStoppedZygoteIsGivenUpAndTheEpochGoesOn) {
  set_log_level(LogLevel::kError);
  const TestDataset data({.size = 160, .sleep_us = 100});
  LoaderOptions options = Team{WorkerKind::kFork}.options();
  options.timeout_ms = 500;
  Loader loader(data, std::move(options));
  std::vector<std::uint64_t> sums{checksum(*patient_next(loader))};
  ASSERT_TRUE(eventually([] { return child_named("infeed:zygote") != 0; }));
  ASSERT_EQ(kill(child_named("infeed:zygote"), SIGSTOP), 0);
  ASSERT_EQ(kill(pid_of(loader, 0), SIGKILL), 0);
  while (auto batch = patient_next(loader)) sums.push_back(checksum(*batch));
  EXPECT_EQ(sums, undisturbed(data));
  while (loader.stats().restarts == 0) EXPECT_TRUE(patient_next(loader));
}

}  // namespace
}  // namespace infeed::testing
