// The consumer is killed: what it leaves goes at once. The figures are printed, and judged by nobody.

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdio>

#include "infeed/base/error.h"
#include "process/team.h"
#include "support/sanitizers.h"

namespace infeed::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kTouchedBytes = std::size_t{kSanitized ? 64 : 1024} << 20;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Inherits what its children leave, so that it can wait for it.
class OrphansTest : public ::testing::TestWithParam<Team> {
 protected:
  OrphansTest() { prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~OrphansTest() override { prctl(PR_SET_CHILD_SUBREAPER, 0); }

  /// A process with memory of its own and a loader, which waits for its end; `use` is done with the loader first.
  template <typename Use>
  static pid_t start_consumer(const Dataset& dataset, std::size_t touched, const Use& use) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    const pid_t consumer = fork();
    if (consumer == 0) {
      const std::vector<char> memory(touched, 1);
      LoaderOptions options = GetParam().options();
      options.timeout_ms = 100;
      Loader loader(dataset, std::move(options));
      use(loader);
      if (write(ends[1], "", 1) == 1) pause();
      _exit(1);
    }
    char ready = 0;
    EXPECT_EQ(read(ends[0], &ready, 1), 1);
    close(ends[0]);
    close(ends[1]);
    return consumer;
  }

  /// Kills it and waits until nothing of it is left; how many processes of its own that were.
  static int kill_and_collect(pid_t consumer, const char* what) {
    const Clock::time_point start = Clock::now();
    kill(consumer, SIGKILL);
    waitpid(consumer, nullptr, 0);
    const double alone = ms_since(start);
    int left = 0;
    for (int status = 0; waitpid(-1, &status, 0) > 0; ++left) EXPECT_TRUE(WIFEXITED(status)) << "status " << status;
    std::printf("%s, %s: consumer gone after %.1f ms, its workers after %.1f ms\n", GetParam().name().c_str(), what,
                alone, ms_since(start));
    return left;
  }
  static int expected() { return GetParam().kind == WorkerKind::kFork ? 3 : 2; }  // a zygote
};

void take_one(Loader& loader) { (void)patient_next(loader); }

TEST_P(OrphansTest, LeaveWhenTheConsumerIsKilled) {
  const TestDataset data({.size = 100'000, .sleep_us = 100});
  EXPECT_EQ(kill_and_collect(start_consumer(data, 0, take_one), "working"), expected());
}

TEST_P(OrphansTest, LeaveInTheMiddleOfASampleThatNeverEnds) {
  const TestDataset data({.size = 100, .hangs_at = 0});
  const auto reach_it = [](Loader& loader) {
    while (!has(error_of_epoch<TimeoutError>(loader), "at sample 0")) {
    }
  };
  EXPECT_EQ(kill_and_collect(start_consumer(data, 0, reach_it), "in a sample"), expected());
}

TEST_P(OrphansTest, LeaveWhenAConsumerWithMuchMemoryIsKilled) {
  const TestDataset data({.size = 100'000, .sleep_us = 100});
  EXPECT_EQ(kill_and_collect(start_consumer(data, kTouchedBytes, take_one), "much memory"), expected());
}

INSTANTIATE_TEST_SUITE_P(Teams, OrphansTest, ::testing::ValuesIn(teams()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace infeed::testing
