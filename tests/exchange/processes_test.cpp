#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <random>

#include "exchange/crew.h"

namespace infeed::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t kTasks = 60;  // a fork of the sanitizer's shadow takes tens of milliseconds
#else
constexpr std::uint64_t kTasks = 400;
#endif

std::string expected(std::uint64_t number) { return std::to_string(number) + ": " + std::to_string(number * 3); }

/// Posts to both workers, four ahead, and checks every answer.
void run_epoch(
    Exchange& exchange, Crew& crew, const std::function<Fate()>& next_fate,
    const std::function<void(std::uint64_t)>& between = [](std::uint64_t) {}) {
  constexpr std::uint64_t kDepth = 4;
  for (std::uint64_t next = 0; next < kTasks + kDepth; ++next) {
    if (next >= kDepth) {
      ASSERT_EQ(crew.receive(next - kDepth, next_fate()), expected(next - kDepth));
    }
    if (next < kTasks) post(exchange, next, static_cast<int>(next % 2), {static_cast<int>(next) * 3});
    between(next);
  }
}

/// Whether it comes in every task; the others need somebody who sleeps.
bool is_certain(RingStep step) { return step <= RingStep::kAfterDone; }

class DeathTest : public ::testing::TestWithParam<RingStep> {};

TEST_P(DeathTest, AtThisStepLosesNothingAndTwiceNothing) {
  Exchange exchange({.num_workers = 2, .num_slots = 6});
  const Fate fate{GetParam(), 5};
  Crew crew(exchange, 2, fate);
  run_epoch(exchange, crew, [&] { return fate; });
  EXPECT_TRUE(crew.deaths() > 0 || !is_certain(GetParam()));
  crew.stop();
  for (const int worker : {0, 1}) EXPECT_TRUE(exchange.bury(worker).empty());
  EXPECT_EQ(exchange.stats().extents_free, exchange.stats().extents);
}

INSTANTIATE_TEST_SUITE_P(Steps, DeathTest,
                         ::testing::Values(RingStep::kBeforeCas, RingStep::kAfterCas, RingStep::kAfterTodo,
                                           RingStep::kAfterBind, RingStep::kBeforeDone, RingStep::kAfterDone,
                                           RingStep::kBeforeRing, RingStep::kBeforeSleep, RingStep::kWoken),
                         [](const auto& test) { return "Step" + std::to_string(static_cast<int>(test.param)); });

TEST(ExchangeProcessesTest, KillsAtAnyTimeLoseNothing) {
  Exchange exchange({.num_workers = 2, .num_slots = 6});
  Crew crew(exchange, 2);
  std::mt19937 random(7);
  run_epoch(
      exchange, crew, [] { return Fate{}; },
      [&](std::uint64_t number) {
        if (number % 10 == 9) crew.kill(static_cast<int>(random() % 2));
      });
  EXPECT_GT(crew.deaths(), 0);
}

TEST(ExchangeProcessesTest, BuryNamesTheUnfinishedTasks) {
  Exchange exchange({.num_workers = 2, .num_slots = 4});
  const ExchangeHandle handle = exchange.handle();
  for (const std::uint64_t number : {1U, 2U, 3U}) post_text(exchange, number, 0, "");
  post_text(exchange, 4, 1, "");
  const pid_t worker = start_child([&] {
    ExchangeWorker port(handle, 0);
    reply(port, answer_to(claim_one(port)));
    static_cast<void>(claim_one(port));
    return 3;
  });
  EXPECT_EQ(exit_code(worker), 3);
  std::vector<std::uint64_t> unfinished = exchange.bury(0);
  std::sort(unfinished.begin(), unfinished.end());
  EXPECT_EQ(unfinished, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(receive(exchange, 1), "1= ");
  EXPECT_EQ(exchange.stats().extents_free, exchange.stats().extents);
}

TEST(ExchangeProcessesTest, ARetiredWorkerThatDiesInItsLastTaskLosesNothing) {
  Exchange exchange({.num_workers = 2});
  const ExchangeHandle handle = exchange.handle();
  post_text(exchange, 1, Exchange::kAnyWorker, "x");
  const pid_t leaving = start_child([&] {
    ExchangeWorker port(handle, 0);
    static_cast<void>(claim_one(port));
    while (!port.stopping()) std::this_thread::yield();
    return 3;
  });
  ASSERT_TRUE(eventually([&] { return exchange.stats().workers[0].in_hand_s > 0; }));
  exchange.retire(0);
  EXPECT_EQ(exit_code(leaving), 3);
  EXPECT_EQ(exchange.bury(0), std::vector<std::uint64_t>{1});
  ExchangeWorker other(handle, 1);
  reply(other, answer_to(claim_one(other)));
  EXPECT_EQ(receive(exchange, 1), "1= x");
}

TEST(ExchangeProcessesTest, WorkersEndWithTheirConsumerInTheMiddleOfATask) {
  auto* const pids =
      static_cast<std::atomic<pid_t>*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  const pid_t consumer = start_child([&] {
    Exchange exchange({.num_workers = 2});
    const ExchangeHandle handle = exchange.handle();
    for (int worker = 0; worker < 2; ++worker) {
      post_text(exchange, static_cast<std::uint64_t>(worker), worker, "");
      start_child([&] {
        ExchangeWorker port(handle, worker);
        static_cast<void>(claim_one(port));
        pids[worker] = getpid();
        for (;;) pause();
        return 0;
      });
    }
    for (;;) pause();
    return 0;
  });
  ASSERT_TRUE(eventually([&] { return pids[0] != 0 && pids[1] != 0; }));
  kill(consumer, SIGKILL);
  exit_code(consumer);
  EXPECT_TRUE(eventually([&] { return has_ended(pids[0]) && has_ended(pids[1]); }));
  munmap(pids, 4096);
}

TEST(ExchangeProcessesTest, AChildOfTheUsersReadsWhatWasHeldAtItsFork) {
  Exchange exchange({.num_workers = 2, .num_slots = 6});
  Crew crew(exchange, 2);
  post_text(exchange, 1'000'000, 0, "kept for the child");
  wait_for(exchange, 1'000'000);
  ExchangeMessage message = exchange.take(1'000'000);
  int gate[2];
  ASSERT_EQ(pipe(gate), 0);
  const pid_t child = start_child([&] {
    char go = 0;
    static_cast<void>(read(gate[0], &go, 1));
    return text_of(message) == "1000000= kept for the child" ? 0 : 1;
  });
  message = {};
  run_epoch(exchange, crew, [] { return Fate{}; });
  EXPECT_EQ(write(gate[1], "x", 1), 1);
  EXPECT_EQ(exit_code(child), 0);
  close(gate[0]), close(gate[1]);
}

TEST(ExchangeProcessesTest, ForksOfWorkersRetireNothing) {
  Exchange exchange({.num_workers = 2, .num_slots = 4});
  Crew crew(exchange, 1);
  post_text(exchange, 1, 0, "");
  wait_for(exchange, 1);
  ExchangeMessage message = exchange.take(1);
  {
    const WorkerFork ours;
    exit_code(start_child([] { return 0; }));
  }
  message = {};
  EXPECT_EQ(exchange.stats().extents_free, exchange.stats().extents);
}

TEST(ExchangeProcessesTest, AForkedCopyIsInert) {
  auto exchange = std::make_unique<Exchange>(ExchangeOptions{.num_slots = 4});
  Crew crew(*exchange, 1);
  const pid_t child = start_child([&] {
    try {
      post_text(*exchange, 1, 0, "");
    } catch (const Error&) {
      exchange->close();
      exchange.reset();
      return 0;
    }
    return 1;
  });
  EXPECT_EQ(exit_code(child), 0);
  post_text(*exchange, 1, 0, "here");
  EXPECT_EQ(crew.receive(1), "1= here");
}

// A worker keeps neither the memory nor the descriptor of an exchange that is not its own.
TEST(ExchangeProcessesTest, AWorkerDropsTheMemoryOfOtherExchangesAndTheirCopiesMayStillEnd) {
  auto other = std::make_unique<Exchange>(ExchangeOptions{});
  Exchange exchange({});
  const ExchangeHandle handle = exchange.handle();
  const int others_fd = other->handle().arena_fd();
  const pid_t child = start_child([&] {
    ExchangeWorker port(handle, 0);
    if (fcntl(others_fd, F_GETFD) != -1) return 1;
    const int mine = dup2(STDERR_FILENO, others_fd);  // somebody else's by now
    other.reset();
    return fcntl(mine, F_GETFD) == -1 ? 2 : 0;
  });
  EXPECT_EQ(exit_code(child), 0);
}

TEST(ExchangeProcessesTest, LeavesNoProcessAndNoDescriptor) {
  const std::size_t before = open_descriptors();
  for (int round = 0; round < 20; ++round) {
    Exchange exchange({.num_workers = 2, .num_slots = 6});
    Crew crew(exchange, 2);
    post(exchange, 0, 1, {0});
    ASSERT_EQ(crew.receive(0), "0: 0");
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_TRUE(children().empty());
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(ExchangeProcessesTest, FitsASmallAddressSpace) {
  for (const std::size_t gibibytes : {1, 4, 20}) {
    const pid_t child = start_child([&] {
      const rlimit limit{gibibytes << 30, gibibytes << 30};
      setrlimit(RLIMIT_AS, &limit);
      Exchange exchange({.num_workers = 8, .num_slots = 16});
      ExchangeWorker port(exchange.handle(), 0);
      post_text(exchange, 1, 0, "small");
      reply(port, answer_to(claim_one(port)));
      return receive(exchange, 1) == "1= small" ? 0 : 1;
    });
    EXPECT_EQ(exit_code(child), 0) << gibibytes;
  }
}
#endif

}  // namespace
}  // namespace infeed::testing
