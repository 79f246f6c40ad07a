// num_workers = kAutoWorkers: what it decides, on a pipeline whose time is made up; and that it changes no batch.

#include "loader/auto_workers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
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

  AutoWorkers tuner{{.usable_cpus = cpus, .threads = threads}};
  AutoWorkers::Clock::time_point now{};
  AutoWorkers::WorkerTime time;
  int changes = 0;

  void pass(double seconds) {
    now += std::chrono::duration_cast<AutoWorkers::Clock::duration>(std::chrono::duration<double>(seconds));
  }

  void turn() {
    const int workers = tuner.workers();
    const double step = step_s * std::max(1.0, trainer_cpus > 0 ? (workers + trainer_cpus) / cpus : 1.0);
    const double feed = sample_s / std::min<double>(workers, cpus);
    const double cycle = std::max(step, feed);
    tuner.called(now);
    pass(cycle - step);
    const bool full = tuner.returned(true, now);
    pass(step);
    const auto busy = static_cast<std::uint64_t>(sample_s * 1e9);
    time.busy_ns += busy;
    time.idle_ns += static_cast<std::uint64_t>(std::max(0.0, workers * cycle * 1e9 - static_cast<double>(busy)));
    if (full && tuner.look(time)) ++changes;
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

/// Reads that sleep: more workers than processors are of use.
class SlowReads final : public Dataset {
 public:
  explicit SlowReads(unsigned sleep_us) : sleep_us_(sleep_us) {}
  [[nodiscard]] std::int64_t size() const override { return samples_.size(); }
  [[nodiscard]] const Schema& schema() const override { return samples_.schema(); }
  void read(Row& row) const override {
    if (sleep_us_ > 0) usleep(sleep_us_);
    samples_.read(row);
  }

 private:
  unsigned sleep_us_;
  SyntheticDataset samples_{8000, Schema{{"x", DType::kFloat32, {16}}}};
};

LoaderOptions auto_options(WorkerKind kind, Filling filling) {
  return {.batch_size = 8,
          .shuffle = true,
          .seed = 4,
          .num_workers = kAutoWorkers,
          .worker_kind = kind,
          .filling = filling};
}

TEST(AutoWorkersTest, ChangesNoBatch) {
  const SlowReads slow(400), fast(0);
  Loader reference(fast, {.batch_size = 8, .shuffle = true, .seed = 4});
  const auto expected = testing::rest_of_epoch(reference);
  for (const WorkerKind kind : {WorkerKind::kThread, WorkerKind::kFork}) {
    for (const Filling filling : {Filling::kCooperative, Filling::kWhole}) {
      Loader loader(slow, auto_options(kind, filling));
      const int before = loader.num_workers();
      EXPECT_EQ(testing::rest_of_epoch(loader), expected);
      RecordProperty("workers", std::to_string(before) + " -> " + std::to_string(loader.num_workers()));
    }
  }
}

TEST(AutoWorkersTest, EndsWhereTheUserNamesANumber) {
  const SlowReads data(0);
  Loader loader(data, auto_options(WorkerKind::kThread, Filling::kAuto));
  loader.set_num_workers(3);
  static_cast<void>(testing::rest_of_epoch(loader));
  EXPECT_EQ(loader.num_workers(), 3);
}

TEST(AutoWorkersTest, RefusesWhatItCannotDo) {
  const SlowReads data(0);
  EXPECT_THROW(Loader(data, {.num_workers = kAutoWorkers, .worker_kind = WorkerKind::kInline}), ConfigError);
  EXPECT_THROW(Loader(data, {.num_workers = -2}), ConfigError);
  const SyntheticStream stream(100, data.schema());
  EXPECT_THROW(Loader(stream, {.num_workers = kAutoWorkers}), ConfigError);
}

}  // namespace
}  // namespace infeed
