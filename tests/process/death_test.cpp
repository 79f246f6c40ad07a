#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/epochs.h"
#include "support/processes.h"

namespace infeed {
namespace {

using testing::Crew;
using testing::kill_and_wait;
using testing::pid_of;
using testing::rest_of_epoch;

const SyntheticDataset& dataset() {
  static const SyntheticDataset data(200, {{"x", DType::kFloat32, {16}}, {"index", DType::kInt64, {}}},
                                     {.cost_us = 300});
  return data;
}

LoaderOptions options(WorkerKind kind, Filling filling, int max_restarts = -1) {
  return {.batch_size = 8,
          .shuffle = true,
          .seed = 4,
          .num_workers = 2,
          .worker_kind = kind,
          .filling = filling,
          .max_restarts = max_restarts};
}

struct Case {
  WorkerKind kind;
  Filling filling;
};

class DeathTest : public ::testing::TestWithParam<Case> {
 protected:
  // The epoch with no one hurt.
  static std::vector<std::uint64_t> undisturbed() {
    Loader loader(dataset(), {.batch_size = 8, .shuffle = true, .seed = 4});
    return rest_of_epoch(loader);
  }
};

TEST_P(DeathTest, AKilledWorkerIsReplacedAndNothingIsLostOrDoubled) {
  Loader loader(dataset(), options(GetParam().kind, GetParam().filling));
  std::vector<std::uint64_t> sums{testing::checksum(*loader.next())};
  ASSERT_TRUE(kill_and_wait(pid_of(loader, 0)));
  for (const std::uint64_t sum : rest_of_epoch(loader)) sums.push_back(sum);
  EXPECT_EQ(sums, undisturbed());
  while (loader.stats().restarts == 0) rest_of_epoch(loader);  // seen where next() has to wait, and not before
  EXPECT_EQ(loader.stats().restarts, 1);
}

TEST_P(DeathTest, PastMaxRestartsOneErrorNamesTheWorkerAndTheRestGoOn) {
  Loader loader(dataset(), options(GetParam().kind, GetParam().filling, 0));
  std::vector<std::uint64_t> sums{testing::checksum(*loader.next())};
  const pid_t victim = pid_of(loader, 1);
  ASSERT_TRUE(kill_and_wait(victim));
  std::string message;
  while (loader.epoch() == 0 || message.empty()) {
    try {
      const auto batch = loader.next();
      if (batch && batch->epoch() == 0) sums.push_back(testing::checksum(*batch));
    } catch (const WorkerError& error) {
      EXPECT_TRUE(message.empty());
      message = error.what();
    }
  }
  EXPECT_NE(message.find("worker 1 (pid " + std::to_string(victim) + ") was killed by SIGKILL"), std::string::npos)
      << message;
  EXPECT_EQ(sums, undisturbed());
}

TEST_P(DeathTest, WithAllWorkersLostNextThrowsEachTimeAndNeverHangs) {
  Loader loader(dataset(), options(GetParam().kind, GetParam().filling, 0));
  ASSERT_TRUE(loader.next());
  ASSERT_TRUE(kill_and_wait(pid_of(loader, 0)) && kill_and_wait(pid_of(loader, 1)));
  int errors = 0;
  for (int i = 0; i < 40 && errors < 3; ++i) {
    try {
      if (!loader.next()) break;
    } catch (const WorkerError&) {
      ++errors;
    }
  }
  EXPECT_EQ(errors, 3);
}

TEST_P(DeathTest, AWorkerStoppedForEverEndsInATimeoutAndTheDestructorIsBounded) {
  LoaderOptions timed = options(GetParam().kind, GetParam().filling);
  timed.timeout_ms = 300;
  Loader loader(dataset(), std::move(timed));
  ASSERT_TRUE(testing::patient_next(loader));
  ASSERT_TRUE(testing::stop_and_wait(pid_of(loader, 0)) && testing::stop_and_wait(pid_of(loader, 1)));
  std::string message;
  try {
    while (loader.next()) {
    }
  } catch (const TimeoutError& error) {
    message = error.what();
  }
  EXPECT_NE(message.find("timeout_ms 300"), std::string::npos) << message;
}

TEST_P(DeathTest, WorkersLeaveWhenTheirParentIsKilled) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    Loader loader(dataset(), options(GetParam().kind, GetParam().filling));
    (void)loader.next();
    const pid_t pids[2] = {pid_of(loader, 0), pid_of(loader, 1)};
    if (write(pipe_fds[1], pids, sizeof pids) != sizeof pids) _exit(1);
    pause();
  }
  pid_t pids[2] = {};
  ASSERT_EQ(read(pipe_fds[0], pids, sizeof pids), static_cast<ssize_t>(sizeof pids));
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(testing::eventually([&] { return testing::has_ended(pids[0]) && testing::has_ended(pids[1]); }));
  close(pipe_fds[0]);
  close(pipe_fds[1]);
}

TEST_P(DeathTest, ADeathIsSeenAlsoWhileADroppedEpochDrains) {
  // Workers are in samples of the dropped epoch when the new one begins, and one of them dies there.
  const SyntheticDataset slow(64, {{"index", DType::kInt64, {}}}, {.cost_us = 20'000});
  Loader loader(slow,
                {.batch_size = 2, .num_workers = 2, .worker_kind = GetParam().kind, .filling = GetParam().filling});
  for (std::size_t victim = 0; victim < 2; ++victim) {
    ASSERT_TRUE(loader.next());
    loader.reset();
    kill(pid_of(loader, victim), SIGKILL);
  }
  EXPECT_EQ(testing::rest_of_indices(loader).size(), 64U);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const WorkerKind kind : {WorkerKind::kFork, WorkerKind::kSpawn}) {
    for (const Filling filling : {Filling::kCooperative, Filling::kWhole}) all.push_back({kind, filling});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Processes, DeathTest, ::testing::ValuesIn(cases()), [](const auto& test) {
  return std::string(to_string(test.param.kind)) + (test.param.filling == Filling::kWhole ? "whole" : "cooperative");
});

}  // namespace
}  // namespace infeed
