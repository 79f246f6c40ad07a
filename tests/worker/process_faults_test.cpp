// What worker processes do when somebody kills, stops or outlives them.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <random>

#include "infeed/base/error.h"
#include "support/child.h"
#include "support/processes.h"
#include "worker/consumer.h"

namespace infeed::testing {
namespace {

class ProcessFaults : public ::testing::TestWithParam<WorkerKind> {
 protected:
  ProcessFaults() { scene.kind = GetParam(); }
  ~ProcessFaults() override { EXPECT_TRUE(children().empty()); }

  void expect_right(const std::vector<Taken>& batches, std::size_t count, std::uint64_t first = 0) {
    ASSERT_EQ(batches.size(), count);
    for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(batches[i].rows, expected_rows(scene, first + i));
  }
  /// Runs `body` in a child process, which then sleeps; returns the child and what body() wrote.
  template <typename Body>
  pid_t in_another_process(std::vector<pid_t>& told, Body body);

  Scene scene;
};

template <typename Body>
pid_t ProcessFaults::in_another_process(std::vector<pid_t>& told, Body body) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body(ends[1]);
    for (;;) ::pause();
  }
  ::close(ends[1]);
  pid_t pid = 0;
  while (::read(ends[0], &pid, sizeof pid) == sizeof pid && pid != 0) told.push_back(pid);
  ::close(ends[0]);
  return child;
}

void tell(int pipe, const std::vector<pid_t>& pids) {
  for (const pid_t pid : pids) [[maybe_unused]] const auto written = ::write(pipe, &pid, sizeof pid);
  const pid_t end = 0;
  [[maybe_unused]] const auto written = ::write(pipe, &end, sizeof end);
}

std::string comm(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

TEST_P(ProcessFaults, NamesItsProcesses) {
  Consumer consumer(scene);
  expect_right(consumer.run(4), 4);
  EXPECT_TRUE(eventually([&] { return comm(consumer.pool().pid(1)) == "infeed:w1"; }));
  if (scene.kind != WorkerKind::kFork) return;
  EXPECT_TRUE(eventually([&] { return comm(consumer.pool().pids().back()) == "infeed:zygote"; }));
}

TEST_P(ProcessFaults, ListsAKilledWorkerOnceAndReplacesIt) {
  Consumer consumer(scene);
  expect_right(consumer.run(2), 2);
  const pid_t pid = consumer.pool().pid(1);
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(eventually([&] { return consumer.look_after_workers(), !consumer.deaths().empty(); }));
  EXPECT_EQ(consumer.deaths().size(), 1U);
  EXPECT_EQ(consumer.deaths()[0].worker_id, 1);
  EXPECT_EQ(consumer.deaths()[0].pid, pid);
  EXPECT_EQ(consumer.deaths()[0].signal, SIGKILL);
  EXPECT_NE(consumer.pool().pid(1), pid);
  expect_right(consumer.run(6, 2), 6, 2);
}

TEST_P(ProcessFaults, StaysRightWhileWorkersAreKilled) {
  scene.behaviour.sleep_us = 50;
  std::minstd_rand random(5);
  for (const bool whole : {false, true}) {
    scene.whole = whole;
    Consumer consumer(scene);
    for (std::uint64_t round = 0; round < 25; ++round) {
      ASSERT_TRUE(consumer.arm(2 * round) && consumer.arm(2 * round + 1));
      ::usleep(static_cast<useconds_t>(random() % 2000));
      ::kill(consumer.pool().pid(static_cast<int>(random() % 2)), SIGKILL);
      for (std::uint64_t i = 0; i < 2; ++i) {
        const auto taken = consumer.take();
        ASSERT_TRUE(taken) << "round " << round;
        EXPECT_EQ(taken->rows, expected_rows(scene, 2 * round + i));
      }
    }
  }
}

TEST_P(ProcessFaults, CountsAnExitOfDatasetCodeAsADeath) {
  scene.behaviour.exits_at = 20;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm(1));
  ASSERT_TRUE(eventually([&] { return consumer.look_after_workers(), !consumer.deaths().empty(); }));
  EXPECT_EQ(consumer.deaths()[0].signal, 0);
  EXPECT_EQ(consumer.deaths()[0].exit_code, 0);
}

TEST_P(ProcessFaults, DiesOfSigtermButNotOfCtrlC) {
  Consumer consumer(scene);
  expect_right(consumer.run(4), 4);
  ::kill(consumer.pool().pid(0), SIGINT);
  ::kill(consumer.pool().pid(1), SIGTERM);
  ASSERT_TRUE(eventually([&] { return consumer.look_after_workers(), !consumer.deaths().empty(); }));
  EXPECT_EQ(consumer.deaths().size(), 1U);
  EXPECT_EQ(consumer.deaths()[0].worker_id, 1);
  EXPECT_EQ(consumer.deaths()[0].signal, SIGTERM);
}

TEST_P(ProcessFaults, KillsOnRequestWithoutListingIt) {
  Consumer consumer(scene);
  const pid_t pid = consumer.pool().pid(0);
  consumer.pool().kill(0);
  EXPECT_FALSE(exists(pid));
  EXPECT_TRUE(consumer.pool().reap().empty());
  consumer.ring().bury(0);
  consumer.pool().restart(0);
  expect_right(consumer.run(6), 6);
}

TEST_P(ProcessFaults, DoesNotTakeAStoppedWorkerForDead) {
  Consumer consumer(scene);
  expect_right(consumer.run(4), 4);
  ASSERT_TRUE(stop_and_wait(consumer.pool().pid(0)));
  expect_right(consumer.run(4, 4), 4, 4);  // the other worker does it
  EXPECT_TRUE(consumer.deaths().empty());
}

TEST_P(ProcessFaults, EndsThoughASampleHangs) {
  scene.behaviour.hangs_at = 5;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm(0));
  ASSERT_TRUE(eventually([&] { return consumer.ring().stats(0).index == 5 || consumer.ring().stats(1).index == 5; }));
}

TEST_P(ProcessFaults, LeavesNoWorkerBehindAKilledConsumer) {
  std::vector<pid_t> workers;
  const pid_t consumer = in_another_process(workers, [&](int pipe) {
    auto* left = new Consumer(scene);
    left->pool().kill(0);
    left->ring().bury(0);
    left->pool().restart(0);  // one of the zygote's, where there is one
    left->run(2);
    tell(pipe, left->pool().pids());
  });
  ASSERT_GE(workers.size(), 2U);
  ::kill(consumer, SIGKILL);
  ::waitpid(consumer, nullptr, 0);
  for (const pid_t pid : workers) EXPECT_TRUE(eventually([&] { return has_ended(pid); })) << pid;
}

TEST_P(ProcessFaults, LeavesNoHangingWorkerBehindAKilledConsumer) {
  scene.behaviour.hangs_at = 5;
  std::vector<pid_t> workers;
  const pid_t consumer = in_another_process(workers, [&](int pipe) {
    auto* left = new Consumer(scene);
    left->arm(0);
    eventually([&] { return left->ring().stats(0).index == 5 || left->ring().stats(1).index == 5; });
    tell(pipe, left->pool().pids());
  });
  ASSERT_GE(workers.size(), 2U);
  ::kill(consumer, SIGKILL);
  ::waitpid(consumer, nullptr, 0);
  for (const pid_t pid : workers) EXPECT_TRUE(eventually([&] { return has_ended(pid); })) << pid;
}

TEST_P(ProcessFaults, SurvivesTheEndOfTheThreadThatStartedIt) {
  std::unique_ptr<Consumer> consumer;
  std::thread([&] { consumer = std::make_unique<Consumer>(scene); }).join();
  expect_right(consumer->run(20), 20);
  EXPECT_TRUE(consumer->deaths().empty());
}

TEST_P(ProcessFaults, WorksWhereSigchldIsIgnored) {
  ::signal(SIGCHLD, SIG_IGN);
  {
    Consumer consumer(scene);
    expect_right(consumer.run(2), 2);
    ::kill(consumer.pool().pid(1), SIGKILL);
    ASSERT_TRUE(eventually([&] { return consumer.look_after_workers(), !consumer.deaths().empty(); }));
    expect_right(consumer.run(4, 2), 4, 2);
  }
  ::signal(SIGCHLD, SIG_DFL);
}

TEST_P(ProcessFaults, StaysInertInAChildOfTheUsers) {
  Consumer consumer(scene);
  const pid_t child = ::fork();
  if (child == 0) {
    consumer.pool().abandon_in_child();
    consumer.stop();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
  expect_right(consumer.run(10), 10);
  EXPECT_TRUE(consumer.deaths().empty());
}

TEST_P(ProcessFaults, ListsAWorkerThatWasKilledWhileLeaving) {
  scene.behaviour.hangs_at = 16;  // in batch 1, worker 1's
  scene.whole = true;
  Consumer consumer(scene);
  ASSERT_TRUE(consumer.arm(1));
  ASSERT_TRUE(eventually([&] { return consumer.ring().stats(1).index == 16; }));
  consumer.pool().resize(1);
  ::kill(consumer.pool().pid(1), SIGKILL);
  ASSERT_TRUE(eventually([&] { return consumer.look_after_workers(), !consumer.deaths().empty(); }));
  EXPECT_EQ(consumer.deaths()[0].worker_id, 1);
  EXPECT_EQ(consumer.pool().pid(1), 0);  // nobody wants it back
}

// Lowers the limit of descriptors to `limit` while it lives.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t limit) {
    ::getrlimit(RLIMIT_NOFILE, &saved_);
    const rlimit low{.rlim_cur = limit, .rlim_max = saved_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &low);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &saved_); }

 private:
  rlimit saved_{};
};

TEST_P(ProcessFaults, StartsTwelveWorkersWith32Descriptors) {
  const FewDescriptors few(32);
  scene.workers = 12;
  Consumer consumer(scene);
  expect_right(consumer.run(20), 20);
}

TEST_P(ProcessFaults, SaysWhichLimitIsTooLow) {
  const std::size_t before = open_descriptors();
  const FewDescriptors few(24);
  scene.workers = 30;
  try {
    Consumer consumer(scene);
    FAIL() << "30 workers with 24 descriptors";
  } catch (const MemoryError& error) {
    EXPECT_NE(std::string(error.what()).find("RLIMIT_NOFILE) is 24"), std::string::npos) << error.what();
  }
  EXPECT_TRUE(children().empty());
  EXPECT_LE(open_descriptors(), before + 1);  // the consumer's own doorbell, which its constructor left
}

TEST_P(ProcessFaults, SaysSoWhereverTheDescriptorsEnd) {
  scene.workers = 30;
  for (std::size_t more = 0; more < 16; ++more) {
    const FewDescriptors few(open_descriptors() + more);
    EXPECT_TRUE(throws_naming<MemoryError>([&] { const Consumer consumer(scene); }, {"RLIMIT_NOFILE"})) << more;
    EXPECT_TRUE(children().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ProcessFaults, ::testing::Values(WorkerKind::kFork, WorkerKind::kSpawn),
                         [](const auto& kind) { return kind.param == WorkerKind::kFork ? "Fork" : "Spawn"; });

TEST(Zygote, IsNotMissedWhenItIsKilled) {
  Scene scene;
  scene.kind = WorkerKind::kFork;
  Consumer consumer(scene);
  ASSERT_EQ(consumer.run(2).size(), 2U);
  ::kill(consumer.pool().pids().back(), SIGKILL);
  ::kill(consumer.pool().pid(0), SIGKILL);
  ASSERT_TRUE(eventually([&] { return consumer.look_after_workers(), !consumer.deaths().empty(); }));
  const auto batches = consumer.run(6, 2);
  ASSERT_EQ(batches.size(), 6U);
  for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(batches[i].rows, expected_rows(scene, 2 + i));
}

TEST(Zygote, DoesNotHoldUpTheEndWhileItIsStopped) {
  Scene scene;
  scene.kind = WorkerKind::kFork;
  Consumer consumer(scene);
  ASSERT_TRUE(stop_and_wait(consumer.pool().pids().back()));
}

}  // namespace
}  // namespace infeed::testing
