// num_workers = kAutoWorkers: what it decides, on a pipeline whose time is made up; and that it changes no batch.

#include "loader/auto_workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "loader/recorder.h"
#include "support/epochs.h"

namespace infeed {
namespace {

/// A trainer and its workers, on a clock of their own.
struct Pipeline {
  double sample_s = 10e-3;  ///< of a batch, for one worker
  double step_s = 2e-3;
  double cpus = 16;
  double trainer_cpus = 0;  ///< the step slows where workers and it need more than there are
  int threads = 1;
  double burst_s = 0;  ///< what waiting for uneven batches costs with the usual depth; a deeper queue leaves a part
  bool reads_sleep = false;
  std::int64_t worker_bytes = 0;
  std::int64_t memory_bytes = 1 << 30;
  std::int64_t queue_bytes = 0;  ///< of the usual depth

  AutoWorkers tuner{{.usable_cpus = cpus, .threads = threads, .deepest = 8}};
  AutoWorkers::Clock::time_point now{};
  AutoWorkers::WorkerTime time;
  int changes = 0;
  int most_workers = 0;

  void pass(double seconds) {
    now += std::chrono::duration_cast<AutoWorkers::Clock::duration>(std::chrono::duration<double>(seconds));
  }

  [[nodiscard]] double step_with(int workers) const {
    return step_s * std::max(1.0, trainer_cpus > 0 ? (workers + trainer_cpus) / cpus : 1.0);
  }
  /// Of a batch.
  [[nodiscard]] double cycle_s(int workers, int times_deeper) const {
    const double feed = sample_s / (reads_sleep ? workers : std::min<double>(workers, cpus));
    return std::max(step_with(workers), feed) + burst_s / times_deeper;
  }

  void turn() {
    const int workers = tuner.workers();
    const double step = step_with(workers), cycle = cycle_s(workers, tuner.times_deeper());
    tuner.called(now);
    pass(cycle - step);
    const bool full = tuner.returned(true, now);
    pass(step);
    const auto busy = static_cast<std::uint64_t>(sample_s * 1e9);
    time.busy_ns += busy;
    time.awake_ns += reads_sleep ? busy / 100 : busy;
    time.idle_ns += static_cast<std::uint64_t>(std::max(0.0, workers * cycle * 1e9 - static_cast<double>(busy)));
    if (full && tuner.look(time, [&] { return memory(); })) ++changes;
    most_workers = std::max(most_workers, tuner.workers());
  }
  [[nodiscard]] AutoWorkers::Memory memory() const {
    const std::int64_t queue = queue_bytes * tuner.times_deeper();
    return {.left = memory_bytes - tuner.workers() * worker_bytes - queue,
            .worker = static_cast<std::uint64_t>(worker_bytes),
            .queue = static_cast<std::uint64_t>(queue)};
  }
  void train(int batches) {
    for (int i = 0; i < batches; ++i) turn();
  }
};

TEST(AutoWorkersTest, AddsWorkersUntilTheTrainerIsFed) {
  Pipeline pipeline;
  pipeline.train(5000);
  EXPECT_GE(pipeline.tuner.workers(), 5);
  EXPECT_LE(pipeline.tuner.workers(), 7);
}

TEST(AutoWorkersTest, GivesIdleWorkersBack) {
  Pipeline pipeline;
  pipeline.train(5000);
  pipeline.sample_s = 1e-3;
  pipeline.train(20000);
  EXPECT_LE(pipeline.tuner.workers(), 2);
}

TEST(AutoWorkersTest, RestsWhereItIsRight) {
  Pipeline pipeline;
  pipeline.train(20000);
  const int before = pipeline.changes;
  pipeline.train(20000);
  EXPECT_LE(pipeline.changes - before, 2);
}

TEST(AutoWorkersTest, StopsAtTheProcessorsWhereMoreWorkersAddNothing) {
  Pipeline pipeline{.sample_s = 50e-3, .cpus = 4};
  pipeline.train(3000);
  EXPECT_GE(pipeline.tuner.workers(), 4);
  EXPECT_LE(pipeline.tuner.workers(), 5);
}

TEST(AutoWorkersTest, TriesLessAndLessOftenWhatDidNotHelp) {
  Pipeline pipeline{.sample_s = 50e-3, .cpus = 4};
  pipeline.train(10000);
  const int before = pipeline.changes;
  pipeline.train(10000);
  EXPECT_LE(pipeline.changes - before, before);
}

TEST(AutoWorkersTest, LeavesTheTrainerItsProcessors) {
  Pipeline pipeline{.sample_s = 4e-3, .step_s = 4e-3, .cpus = 4, .trainer_cpus = 2};
  pipeline.train(30000);
  EXPECT_LE(pipeline.tuner.workers(), 2);
}

TEST(AutoWorkersTest, LearnsAnewWhenThePipelineChanges) {
  Pipeline pipeline{.sample_s = 2e-3, .step_s = 2e-3};
  pipeline.train(5000);
  pipeline.sample_s = 16e-3;
  pipeline.train(10000);
  EXPECT_GE(pipeline.tuner.workers(), 8);
}

TEST(AutoWorkersTest, StaysBelowAnEndThatTheMachineSet) {
  Pipeline pipeline;
  pipeline.tuner.refused(2);
  pipeline.train(5000);
  EXPECT_LE(pipeline.tuner.workers(), 2);
}

TEST(AutoWorkersTest, BeginsWithHalfOfTheUsableProcessorsUpToFour) {
  EXPECT_EQ(AutoWorkers({.usable_cpus = 1}).workers(), 1);
  EXPECT_EQ(AutoWorkers({.usable_cpus = 5.5}).workers(), 2);
  EXPECT_EQ(AutoWorkers({.usable_cpus = 64}).workers(), 4);
  EXPECT_EQ(AutoWorkers({.usable_cpus = 64, .threads = 16}).workers(), 2);
  EXPECT_EQ(AutoWorkers({.usable_cpus = 64, .first = 1}).workers(), 1);
}

TEST(AutoWorkersTest, TakesMoreReadersThatSleepThanThereAreProcessors) {
  Pipeline pipeline{.sample_s = 30e-3, .step_s = 2e-3, .cpus = 2, .reads_sleep = true};
  pipeline.train(5000);
  EXPECT_GE(pipeline.tuner.workers(), 14);
  const int before = pipeline.changes;
  pipeline.train(5000);
  EXPECT_LE(pipeline.changes - before, 2);  // they leave the trainer its processors
}

TEST(AutoWorkersTest, GoesUpToTheProcessorsInOneStep) {
  Pipeline pipeline{.sample_s = 100e-3, .step_s = 2e-3, .cpus = 32};
  while (pipeline.changes == 0) pipeline.turn();
  EXPECT_EQ(pipeline.tuner.workers(), 32);
}

TEST(AutoWorkersTest, LooksAfterFewBatchesWhereTheyAreSlow) {
  Pipeline pipeline{.sample_s = 10, .cpus = 2};
  pipeline.train(15);
  EXPECT_EQ(pipeline.changes, 1);
}

TEST(AutoWorkersTest, TakesNoWorkerThatMemoryHasNoRoomFor) {
  Pipeline pipeline{.cpus = 2, .reads_sleep = true, .worker_bytes = 100 << 20, .memory_bytes = 350 << 20};
  pipeline.train(10000);
  EXPECT_EQ(pipeline.tuner.workers(), 3);
  EXPECT_EQ(pipeline.most_workers, 3);
}

TEST(AutoWorkersTest, GivesWorkersBackForGoodWhereMemoryIsOverdrawn) {
  Pipeline pipeline{.worker_bytes = 10 << 20, .memory_bytes = 350 << 20};
  pipeline.train(5000);
  EXPECT_GE(pipeline.tuner.workers(), 5);
  pipeline.worker_bytes = 110 << 20;  // caches filled
  pipeline.train(5000);
  EXPECT_EQ(pipeline.tuner.workers(), 3);
}

TEST(AutoWorkersTest, DeepensTheQueueOfABurstyPipeline) {
  Pipeline pipeline{.sample_s = 1e-3, .step_s = 5e-3, .burst_s = 2e-3};
  pipeline.train(5000);
  EXPECT_GE(pipeline.tuner.times_deeper(), 4);
}

TEST(AutoWorkersTest, DeepensTheQueueOnlyAsFarAsMemoryHasRoom) {
  Pipeline pipeline{
      .sample_s = 1e-3, .step_s = 5e-3, .burst_s = 4e-3, .memory_bytes = 350 << 20, .queue_bytes = 100 << 20};
  pipeline.train(5000);
  EXPECT_EQ(pipeline.tuner.times_deeper(), 2);
}

TEST(AutoWorkersTest, LeavesTheQueueWhereDepthDoesNotHelp) {
  Pipeline pipeline{.sample_s = 50e-3, .cpus = 4};
  pipeline.train(10000);
  EXPECT_EQ(pipeline.tuner.times_deeper(), 1);
}

TEST(AutoWorkersTest, APauseOfTheTrainerChangesNothing) {
  Pipeline pipeline;
  pipeline.train(20000);
  const int before = pipeline.changes;
  for (int i = 0; i < 20; ++i) {
    pipeline.pass(30);  // it saves, or evaluates
    pipeline.time.idle_ns += 30'000'000'000;
    pipeline.train(300);
  }
  EXPECT_LE(pipeline.changes - before, 2);
}

/// What a batch takes at best, with any number of workers and any depth.
double best_cycle_s(const Pipeline& pipeline) {
  double best = 1e9;
  for (int workers = 1; workers <= pipeline.tuner.most(); ++workers)
    best = std::min(best, pipeline.cycle_s(workers, 8));
  return best;
}

TEST(AutoWorkersTest, ComesWithinFivePercentOfTheBestOfFivePipelines) {
  Pipeline pipelines[] = {{.sample_s = 40e-3, .step_s = 2e-3, .cpus = 6},                       // decode
                          {.sample_s = 48e-3, .step_s = 5e-3, .cpus = 2, .reads_sleep = true},  // read
                          {.sample_s = 6e-3, .step_s = 5e-3, .cpus = 2},                        // transfer
                          {.sample_s = 2e-3, .step_s = 8e-3, .cpus = 2, .trainer_cpus = 2},     // trainer
                          {.sample_s = 3e-3, .step_s = 5e-3, .cpus = 4, .burst_s = 2e-3}};      // bursts
  for (Pipeline& pipeline : pipelines) {
    pipeline.train(10000);
    const double found = pipeline.cycle_s(pipeline.tuner.workers(), pipeline.tuner.times_deeper());
    EXPECT_LT(found, best_cycle_s(pipeline) / 0.95) << pipeline.sample_s << ' ' << pipeline.tuner.workers();
    EXPECT_LE(pipeline.changes, 24) << pipeline.sample_s;  // of 10,000 batches
  }
}

/// Loaders of samples that sleep: the trainer waits, so that workers must come.
class AutoLoaderTest : public ::testing::Test {
 protected:
  AutoLoaderTest() {
    set_log_level(LogLevel::kInfo);
    set_log_sink([this](LogLevel, std::string_view line) {
      if (line.find("num_workers=auto: ") == 0) lines.emplace_back(line);
    });
  }
  ~AutoLoaderTest() override {
    set_log_sink({});
    set_log_level(LogLevel::kWarning);
  }

  static SyntheticDataset samples(std::int64_t wait_us) {
    return {2000, Schema{{"x", DType::kFloat32, {16}}}, {.wait_us = wait_us}};
  }
  static LoaderOptions options(WorkerKind kind, Filling filling = Filling::kAuto) {
    return {.batch_size = 8,
            .shuffle = true,
            .seed = 4,
            .num_workers = kAutoWorkers,
            .worker_kind = kind,
            .filling = filling};
  }
  /// Epochs until a worker has come.
  void train(LoaderOptions given) {
    const bool on_host = given.device.empty();
    Loader loader(slow, std::move(given));
    const int before = loader.num_workers();
    do {
      if (on_host) {
        EXPECT_EQ(testing::rest_of_epoch(loader), testing::rest_of_epoch(reference));
      } else {
        EXPECT_EQ(testing::rest_of_indices(loader), testing::rest_of_indices(reference));
      }
    } while (!came(before));
  }
  /// A worker has, and may have gone again.
  [[nodiscard]] bool came(int before) const {
    const std::string more = "num_workers=auto: " + std::to_string(before) + " -> ";
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(more) == 0 && line.find(": the trainer waited ") != std::string::npos;
    });
  }

  const SyntheticDataset slow = samples(1000), fast = samples(0);
  Loader reference{fast, {.batch_size = 8, .shuffle = true, .seed = 4}};
  std::vector<std::string> lines;
};

TEST_F(AutoLoaderTest, ChangesNoBatchOfThreads) { train(options(WorkerKind::kThread, Filling::kCooperative)); }
TEST_F(AutoLoaderTest, ChangesNoBatchOfForkedWorkers) { train(options(WorkerKind::kFork, Filling::kWhole)); }
TEST_F(AutoLoaderTest, ChangesNoBatchOfSpawnedWorkers) { train(options(WorkerKind::kSpawn)); }

TEST_F(AutoLoaderTest, ChangesNoBatchOnItsWayToADevice) {
  LoaderOptions given = options(WorkerKind::kThread);
  given.device = "simulated:0";
  train(std::move(given));
}

TEST_F(AutoLoaderTest, SaysEachChangeAndItsReasonInALine) {
  LoaderOptions given = options(WorkerKind::kThread);
  given.prefetch = 2;  // the depth stays
  Loader loader(slow, std::move(given));
  const int before = loader.num_workers();
  while (lines.empty()) static_cast<void>(loader.next());
  const std::string change = std::to_string(before) + " -> " + std::to_string(loader.num_workers());
  EXPECT_EQ(lines.front().find("num_workers=auto: " + change + ": the trainer waited "), 0U) << lines.front();
}

/// Each process takes 64 MiB for its first sample.
class Hog final : public Dataset {
 public:
  explicit Hog(const Dataset& samples) : samples_(samples) {}
  [[nodiscard]] std::int64_t size() const override { return samples_.size(); }
  [[nodiscard]] const Schema& schema() const override { return samples_.schema(); }
  void read(Row& row) const override {
    thread_local const std::vector<char> taken(64 << 20, 1);
    samples_.read(row);
  }

 private:
  const Dataset& samples_;
};

TEST_F(AutoLoaderTest, StaysWithinItsMemoryBudget) {
  const Hog hog(slow);
  LoaderOptions given = options(WorkerKind::kFork);
  given.memory_budget = read_pss({getpid()}) + (96 << 20);
  Loader loader(hog, std::move(given));
  EXPECT_EQ(testing::rest_of_indices(loader).size(), 2000U);  // 2 s of sleep: some windows
  EXPECT_EQ(loader.num_workers(), 1);
}

TEST_F(AutoLoaderTest, EndsWhereTheUserNamesANumber) {
  Loader loader(fast, options(WorkerKind::kThread));
  loader.set_num_workers(3);
  static_cast<void>(testing::rest_of_epoch(loader));
  EXPECT_EQ(loader.num_workers(), 3);
}

TEST_F(AutoLoaderTest, RefusesWhatItCannotDo) {
  const SyntheticDataset& data = fast;
  EXPECT_THROW(Loader(data, {.num_workers = 2, .memory_budget = 1 << 30}), ConfigError);
  EXPECT_THROW(Loader(data, {.num_workers = kAutoWorkers, .memory_budget = 1}), ConfigError);
  EXPECT_THROW(Loader(data, {.num_workers = kAutoWorkers, .worker_kind = WorkerKind::kInline}), ConfigError);
  EXPECT_THROW(Loader(data, {.num_workers = -2}), ConfigError);
  const SyntheticStream stream(100, data.schema());
  EXPECT_THROW(Loader(stream, {.num_workers = kAutoWorkers}), ConfigError);
}

}  // namespace
}  // namespace infeed
