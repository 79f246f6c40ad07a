// A thousand loaders that come to a thousand ends: each leaves nothing behind. INFEED_STRESS_SEED repeats another mix.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "process/team.h"
#include "support/sanitizers.h"
#include "support/temp_folder.h"

namespace infeed::testing {
namespace {

constexpr int kRounds = kSanitized ? 60 : 1000;

using Random = std::minstd_rand;

const TestDataset kData({.size = 64, .sleep_us = 20});

LoaderOptions any_options(Random& random, const std::vector<WorkerKind>& kinds) {
  const std::vector<Team> all = teams(kinds);
  LoaderOptions options = all[random() % all.size()].options();
  options.num_workers = 1 + static_cast<int>(random() % 3);
  return options;
}

const std::vector<WorkerKind> kAll{WorkerKind::kThread, WorkerKind::kFork, WorkerKind::kSpawn};
const std::vector<WorkerKind> kProcesses{WorkerKind::kFork, WorkerKind::kSpawn};

void take_some(Loader& loader, Random& random) {
  for (auto left = random() % 9; left > 0 && loader.next(); --left) {
  }
}

void break_early(Random& random) {
  Loader loader(kData, any_options(random, kAll));
  for (Batch& batch : loader) {
    EXPECT_EQ(batch.size(), 8);
    if (random() % 4 == 0) break;
  }
}

void stop_during_start(Random& random) { const Loader loader(kData, any_options(random, kAll)); }

void meet_exceptions(Random& random) {
  const TestDataset bad({.size = 64, .raises = {5, 30, 31}});
  Loader loader(bad, any_options(random, kAll));
  int errors = 0;
  for (bool more = true; more;) {
    try {
      more = loader.next().has_value();
    } catch (const DataError&) {
      ++errors;
    }
  }
  EXPECT_GE(errors, 1);
}

void drop_an_epoch_and_resize(Random& random) {
  Loader loader(kData, any_options(random, kAll));
  take_some(loader, random);
  loader.set_num_workers(1 + static_cast<int>(random() % 4));
  loader.reset();
  take_some(loader, random);
}

void lose_a_worker(Random& random) {
  Loader loader(kData, any_options(random, kProcesses));
  (void)loader.next();
  kill(pid_of(loader, 0), SIGKILL);
  EXPECT_EQ(1 + rest_of_epoch(loader).size(), 8U);
}

/// Counts across processes.
class Counter {
 public:
  ~Counter() { close(fd_); }
  void give(std::uint64_t count) const { EXPECT_EQ(write(fd_, &count, sizeof count), 8); }
  void take() const {
    std::uint64_t one = 0;
    EXPECT_EQ(read(fd_, &one, sizeof one), 8);
  }

 private:
  int fd_ = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
};

/// Says that a sample was begun, and ends it when told.
class HeldDataset final : public Dataset {
 public:
  [[nodiscard]] std::int64_t size() const override { return 64; }
  [[nodiscard]] const Schema& schema() const override { return kData.schema(); }
  void read(Row& /*row*/) const override {
    begun.give(1);
    end.take();
  }
  Counter begun, end;
};

void destroy_while_another_thread_waits(Random& random) {
  const HeldDataset held;
  auto loader = std::make_unique<Loader>(held, any_options(random, {WorkerKind::kThread, WorkerKind::kFork}));
  std::jthread other([&held, waits = loader.get()] {
    EXPECT_THROW((void)waits->next(), WorkerError);
    held.end.give(64);
  });
  held.begun.take();
  loader.reset();
}

void fork_with_a_live_loader(Random& random) {
  Loader loader(kData, any_options(random, kAll));
  std::size_t batches = loader.next() ? 1 : 0;
  const pid_t child = fork();
  if (child == 0) {
    try {
      (void)loader.next();
    } catch (const ConfigError&) {
      loader.~Loader();
      _exit(42);
    }
    _exit(1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 42);
  EXPECT_EQ(batches + rest_of_epoch(loader).size(), 8U);
}

/// Runs a loader in another process, which ends as `end` says and does not destroy it; waits for what it leaves.
template <typename End>
void leave_a_loader_behind(Random& random, const End& end) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    static auto* const left = new Loader(kData, any_options(random, kProcesses));
    take_some(*left, random);
    end();
  }
  random.discard(16);
  while (waitpid(-1, nullptr, 0) > 0) {
  }
}

void exit_with_a_live_loader(Random& random) {
  leave_a_loader_behind(random, [] { std::exit(0); });
}
void die_with_a_live_loader(Random& random) {
  leave_a_loader_behind(random, [] { raise(SIGKILL); });
}

constexpr std::array kEnds{break_early,
                           stop_during_start,
                           meet_exceptions,
                           drop_an_epoch_and_resize,
                           lose_a_worker,
                           destroy_while_another_thread_waits,
                           fork_with_a_live_loader,
                           exit_with_a_live_loader,
                           die_with_a_live_loader};

std::size_t threads() { return list_directory("/proc/self/task").size(); }

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return static_cast<std::size_t>(std::count(std::istreambuf_iterator<char>(maps), {}, '\n'));
}

/// Inherits what its children leave, and has a folder of its own to see files in.
class StressTest : public ::testing::Test {
 protected:
  StressTest() {
    set_log_level(LogLevel::kError);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setenv("TMPDIR", folder.str().c_str(), 1);
    EXPECT_EQ(chdir(folder.str().c_str()), 0);
  }
  static void expect_nothing_left(std::size_t descriptors) {
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process or a zombie";
    EXPECT_EQ(errno, ECHILD);
    EXPECT_EQ(open_descriptors(), descriptors);
    EXPECT_EQ(mapped_arenas(), 0U);
  }
  TempFolder folder;
};

TEST_F(StressTest, AThousandEndsLeaveNothing) {
  const char* chosen = std::getenv("INFEED_STRESS_SEED");
  const auto seed = static_cast<Random::result_type>(chosen ? std::atoi(chosen) : 1);
  std::printf("INFEED_STRESS_SEED=%lu\n", seed);
  Random random(seed);
  for (const auto end : kEnds) end(random);  // what is made once and kept: oneTBB's threads, the locale
  const std::size_t descriptors = open_descriptors(), threads_before = threads(), mappings_before = mappings();
  for (int round = 0; round < kRounds && !HasFailure(); ++round) {
    const auto which = random() % kEnds.size();
    kEnds[which](random);
    SCOPED_TRACE("round " + std::to_string(round) + " of end " + std::to_string(which));
    expect_nothing_left(descriptors);
  }
  // oneTBB may start a few threads more, each with a stack, a guard page and a heap of its own.
  EXPECT_LE(threads(), threads_before + 4 + std::thread::hardware_concurrency());
  EXPECT_LE(mappings(), mappings_before + 64);
  EXPECT_TRUE(list_directory(folder.str()).empty());
}

}  // namespace
}  // namespace infeed::testing
