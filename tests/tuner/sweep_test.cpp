// Sweeps of a few milliseconds: what they say, not how fast it was.

#include "infeed/tuner/sweep.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <set>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "support/child.h"
#include "support/processors.h"
#include "support/temp_folder.h"
#include "tuner/load_watch.h"

namespace infeed {
namespace {

class SweepTest : public ::testing::Test {
 protected:
  SweepOptions quick() const {
    return {.kinds = {WorkerKind::kThread, WorkerKind::kFork},
            .workers = {0, 1, 2},
            .repetitions = 2,
            .job = {.batch_size = 4, .step_ms = 0.1, .seconds = 0.02, .warm_up_batches = 1}};
  }
  static std::size_t count(const std::string& text, const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
    return found;
  }
  SyntheticDataset data{200, Schema{{"x", DType::kUInt8, {1000}}}, {.cost_us = 20}};
};

TEST_F(SweepTest, RunsEachSettingInTurnsAfterATrialAndInlineOnce) {
  std::vector<std::string> order;
  SweepOptions options = quick();
  options.on_progress = [&](int, int runs, const WorkerSetting& setting) {
    EXPECT_EQ(runs, 15);
    order.push_back(setting.str());
  };
  const SweepReport report = sweep(data, options);
  const std::vector<std::string> once = {"inline", "thread x 1", "thread x 2", "fork x 1", "fork x 2"};
  ASSERT_EQ(order.size(), 15U);
  for (int round = 0; round < 3; ++round) EXPECT_TRUE(std::equal(once.begin(), once.end(), order.begin() + 5 * round));
  EXPECT_EQ(report.rows.size(), 5U);
}

TEST_F(SweepTest, SaysRateMemoryAndReason) {
  const SweepReport report = sweep(data, quick());
  for (const SweepRow& row : report.rows) {
    EXPECT_GT(row.figures.samples_per_s, 0) << row.setting.str();
    EXPECT_GT(row.figures.memory_bytes, 0) << row.setting.str();
    EXPECT_GT(row.figures.utilisation, 0) << row.setting.str();
    EXPECT_EQ(row.runs, 2);
  }
  EXPECT_NE(report.str().find("Recommended: "), std::string::npos);
  EXPECT_NE(report.str().find("0.75 x physical cores"), std::string::npos);
  EXPECT_NE(report.str().find("largest error on the measured rows"), std::string::npos);
}

TEST_F(SweepTest, GivesCsvJsonAndAPicture) {
  const SweepReport report = sweep(data, quick());
  EXPECT_EQ(count(report.csv(), "\n"), 6U);
  EXPECT_EQ(State::from_json(report.to_state().to_json()).get_states("rows").size(), 5U);
  const std::string svg = report.svg();
  EXPECT_EQ(svg.rfind("<svg", 0), 0U);
  EXPECT_EQ(count(svg, "class=\"mark\""), 2 * 5U + 3U);  // rates, memory, legend
  EXPECT_NE(svg.find("Recommended: " + report.chosen.setting.str()), std::string::npos);
}

TEST_F(SweepTest, RunsOfAllSettingsGoThroughTheSameBatches) {
  SweepOptions options = quick();
  std::vector<int> batches(15);  // of each run
  std::size_t current = 0;
  options.on_progress = [&](int run, int, const WorkerSetting&) { current = static_cast<std::size_t>(run) - 1; };
  options.job.step = [&](Batch&) { ++batches[current]; };
  static_cast<void>(sweep(data, options));
  EXPECT_EQ(std::set<int>(batches.begin() + 5, batches.end()).size(), 1U);
}

TEST_F(SweepTest, ARunIsAsManyBatchesAsTheJobNames) {
  SweepOptions options = quick();
  options.job.batches = 7;
  int batches = 0;
  options.job.step = [&](Batch&) { ++batches; };
  static_cast<void>(sweep(data, options));
  EXPECT_EQ(batches, 10 * (1 + 1 + 2 + 7));  // the first, the warm-up, one for each worker of the most
}

TEST_F(SweepTest, GivesTheTrialRunsWhereItIsStoppedBehindThem) {
  SweepOptions options = quick();
  int runs = 0;
  options.on_progress = [&](int run, int, const WorkerSetting&) { runs = run; };
  options.job.stop = [&] { return runs > 6; };
  const SweepReport report = sweep(data, options);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.rows.size(), 5U);
}

TEST_F(SweepTest, KeepsWhatWasMeasuredWhenStopped) {
  SweepOptions options = quick();
  int runs = 0;
  options.on_progress = [&](int run, int, const WorkerSetting&) { runs = run; };
  options.job.stop = [&] { return runs > 2; };
  const SweepReport report = sweep(data, options);
  EXPECT_TRUE(report.interrupted);
  EXPECT_EQ(report.rows.size(), 2U);
  EXPECT_NE(report.str().find("Stopped early"), std::string::npos);
}

TEST_F(SweepTest, MeasuresTransfersToASimulatedDevice) {
  SweepOptions options = quick();
  options.kinds = {WorkerKind::kThread};
  options.workers = {1};
  options.pinned = {true, false};
  options.job.device = "simulated";
  options.job.device_bytes_per_s = 1e9;
  const SweepReport report = sweep(data, options);
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_FALSE(report.rows[1].setting.pinned);
  EXPECT_GT(report.rows[0].figures.transfer_share, 0);
}

TEST_F(SweepTest, LeavesOutWhatCannotRun) {
  SweepOptions options = quick();
  options.kinds = {WorkerKind::kThread};
  options.threads = {1, 1000};
  options.workers = {1};
  const SweepReport report = sweep(data, options);
  EXPECT_EQ(report.chosen.setting.threads, 1);
  EXPECT_NE(report.rows[1].refused.find("threads_per_worker"), std::string::npos);
}

/// Samples of another dataset, of which one cannot be read, or is the death of whom it meets outside of this process.
class Bad final : public Dataset {
 public:
  Bad(const Dataset& samples, bool kills) : samples_(samples), kills_(kills) {}
  [[nodiscard]] std::int64_t size() const override { return samples_.size(); }
  [[nodiscard]] const Schema& schema() const override { return samples_.schema(); }
  void read(Row& row) const override {
    if (row.index() == 17 && kills_ && getpid() != home_) raise(SIGKILL);
    if (row.index() == 17 && !kills_) throw DataError("the end of the file is missing");
    samples_.read(row);
  }

 private:
  const Dataset& samples_;
  bool kills_;
  pid_t home_ = getpid();
};

TEST_F(SweepTest, ABadSampleGivesWayAndIsCounted) {
  SweepOptions options = quick();
  options.job.batches = 50;  // an epoch: it comes, or one in its place does
  const SweepReport report = sweep(Bad(data, false), options);
  for (const SweepRow& row : report.rows)
    EXPECT_NE(row.figures.verdict.find("others came in their places; the first: the end of the file is missing"),
              std::string::npos)
        << row.setting.str() << row.figures.verdict << row.refused;
}

TEST_F(SweepTest, RefusesSettingsWhoseWorkersDieAndKeepsTheOthers) {
  SweepOptions options = quick();
  options.job.batches = 50;
  const SweepReport report = sweep(Bad(data, true), options);
  ASSERT_EQ(report.rows.size(), 5U);
  for (const SweepRow& row : report.rows) {
    EXPECT_EQ(row.refused.empty(), !row.setting.processes()) << row.setting.str();
    EXPECT_EQ(row.refused.find("SIGKILL") != std::string::npos, row.setting.processes()) << row.refused;
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);  // no child is left
}

TEST_F(SweepTest, TuneRefusesSettingsWhoseWorkersDieAndKeepsTheOthers) {
  JobOptions job = quick().job;
  job.batches = 50;
  const Bad bad(data, true);
  const Tuned tuned = tune(measure_job(bad, job), {.kinds = {WorkerKind::kFork}, .max_workers = 2, .most_trials = 5});
  EXPECT_EQ(tuned.chosen.setting.kind, WorkerKind::kInline);
  EXPECT_NE(tuned.why.find("was refused: worker"), std::string::npos) << tuned.why;
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
}

/// What auto and tune() count with here.
void expect_processors(const Dataset& data, double cpus) {
  const Loader loader(data, {.num_workers = kAutoWorkers});
  EXPECT_DOUBLE_EQ(loader.stats().usable_cpus, cpus);
  EXPECT_EQ(loader.num_workers(), 1);
  const Measure any = [](const WorkerSetting& setting) {
    return Trial{.samples_per_s = setting.workers > 0 ? 1.0 : 2.0};
  };
  const Tuned tuned = tune(any);
  EXPECT_NE(tuned.why.find(fmt::format("with {:.1f} usable CPUs", cpus)), std::string::npos) << tuned.why;
  EXPECT_EQ(tuned.rules[1].setting.kind, WorkerKind::kInline);  // min(4, cores - 2)
}

TEST_F(SweepTest, AutoAndTuneCountTheProcessorsThatAffinityLeaves) {
  const testing::OneProcessor one;
  expect_processors(data, 1);
}

TEST_F(SweepTest, AutoAndTuneCountTheProcessorsThatAQuotaLeaves) {
  const testing::HalfAProcessor half;
  if (!half.is_made()) GTEST_SKIP() << "no right to make a cgroup with a quota";
  EXPECT_TRUE(testing::holds_in_child([&] {
    if (!half.enter()) return false;
    expect_processors(data, 0.5);
    return !HasFailure();
  }));
}

/// /proc/stat where the usable processors were busy and idle for so many ticks, and all others busy throughout.
std::string planted_stat(int busy, int idle) {
  cpu_set_t usable{};
  sched_getaffinity(0, sizeof usable, &usable);
  std::string text = "cpu  1 2 3 4 5 6 7 8 0 0\n";
  for (std::size_t cpu = 0; cpu < 1024; ++cpu) {
    const bool ours = CPU_ISSET(cpu, &usable);
    text += "cpu" + std::to_string(cpu) + " " + std::to_string(ours ? busy : busy + idle) + " 0 0 " +
            std::to_string(ours ? idle : 0) + " 0 0 0 0 0 0\n";
  }
  return text + "intr 5\n";
}

TEST(LoadWatchTest, CountsOthersOnTheProcessorsThatOneMayUse) {
  const testing::TempFolder folder;
  folder.write("proc/stat", planted_stat(1000, 1000));
  const LoadWatch watch({}, folder.str());
  folder.write("proc/stat", planted_stat(1300, 1700));
  EXPECT_NEAR(watch.others_share(), 0.3, 1e-9);
}

/// A container with half of a processor, whose processes took so many seconds.
void plant_group(const testing::TempFolder& folder, int seconds) {
  folder.write("proc/self/cgroup", "0::/a\n");
  folder.write("proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  folder.write("sys/fs/cgroup/a/cpu.max", "50000 100000\n");
  folder.write("sys/fs/cgroup/a/cpu.stat", "usage_usec " + std::to_string(seconds) + "000000\n");
}

TEST(LoadWatchTest, CountsUnderAQuotaOnlyThoseThatShareIt) {
  const testing::TempFolder folder;
  plant_group(folder, 1000);
  folder.write("proc/stat", planted_stat(1000, 1000));
  const LoadWatch watch({}, folder.str());
  folder.write("proc/stat", planted_stat(9000, 1000));  // another container
  EXPECT_EQ(watch.others_share(), 0);
  plant_group(folder, 9000);
  EXPECT_EQ(watch.others_share(), 1);
}

TEST(LoadWatchTest, TellsNothingWhereTheKernelDoesNot) {
  const testing::TempFolder folder;
  EXPECT_EQ(LoadWatch({}, folder.str()).others_share(), 0);
}

TEST_F(SweepTest, SaysWhatOtherProgramsHad) {
  SweepReport report = sweep(data, quick());
  report.others_share = 0;
  EXPECT_EQ(report.str().find("Other programs"), std::string::npos);
  report.others_share = 0.3;
  EXPECT_NE(report.str().find("Other programs had 30 % of the processors"), std::string::npos);
}

TEST_F(SweepTest, RefusesAnEmptySweep) {
  SweepOptions options = quick();
  options.workers = {};
  EXPECT_THROW(static_cast<void>(sweep(data, options)), ConfigError);
}

TEST_F(SweepTest, TuneMeasuresTheJobToo) {
  const Tuned tuned = tune(measure_job(data, quick().job), {.max_workers = 2, .most_trials = 5});
  EXPECT_GT(tuned.chosen.samples_per_s, 0);
  EXPECT_LE(tuned.trials.size(), 5U);
}

}  // namespace
}  // namespace infeed
