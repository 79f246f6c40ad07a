#include "infeed/tuner/tune.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>

#include "infeed/base/error.h"
#include "infeed/tuner/model.h"

namespace infeed {
namespace {

struct Pipeline {
  const char* name;
  PipelineCosts costs;
};

std::vector<Pipeline> pipelines() {
  return {{"decode", {.sample_s = 4e-3, .step_s = 0.2e-3, .hand_over_s = 2e-5, .crosstalk_s = 2e-6, .usable_cpus = 6}},
          {"read", {.sample_s = 9e-3, .cpu_share = 0.02, .step_s = 0.4e-3, .crosstalk_s = 2e-6, .usable_cpus = 4}},
          {"transfer", {.sample_s = 1e-3, .step_s = 0.2e-3, .copy_s = 0.6e-3, .usable_cpus = 8}},
          {"trainer", {.sample_s = 1e-3, .step_s = 2e-3, .crosstalk_s = 1e-5, .usable_cpus = 8}},
          {"bursty", {.sample_s = 1e-3, .step_s = 0.5e-3, .unevenness_s = 2e-3, .usable_cpus = 8}}};
}

/// The model as a machine, with noise.
class Machine {
 public:
  explicit Machine(PipelineCosts costs, double noise = 0, std::uint64_t seed = 1)
      : costs_(costs), noise_(noise), random_(seed) {}

  Trial operator()(const WorkerSetting& setting) {
    const Prediction p = predict(costs_, setting);
    most_bytes = std::max(most_bytes, p.memory_bytes);
    const double factor = 1 + noise_ * std::uniform_real_distribution<double>(-1, 1)(random_);
    return {.samples_per_s = p.samples_per_s * factor,
            .spread = noise_,
            .memory_bytes = p.memory_bytes,
            .utilisation = p.utilisation};
  }
  double most_bytes = 0;

  /// Of all workers from 0 to 64 and depths up to 8 times the workers'.
  [[nodiscard]] double best(double budget = 0, WorkerKind kind = WorkerKind::kThread) const {
    double rate = predict(costs_, {.kind = WorkerKind::kInline}).samples_per_s;
    for (int workers = 1; workers <= 64; ++workers) {
      for (const int prefetch : {0, 4 * workers, 8 * workers}) {
        const Prediction p = predict(costs_, {.kind = kind, .workers = workers, .prefetch = prefetch});
        if (budget == 0 || p.memory_bytes <= budget) rate = std::max(rate, p.samples_per_s);
      }
    }
    return rate;
  }
  [[nodiscard]] double rate(const WorkerSetting& setting) const { return predict(costs_, setting).samples_per_s; }

 private:
  PipelineCosts costs_;
  double noise_;
  std::mt19937_64 random_;
};

Tuned tuned_by(Machine& machine, TuneOptions options = {}) {
  if (options.usable_cpus == 0) options.usable_cpus = 8;
  return tune([&](const WorkerSetting& setting) { return machine(setting); }, options);
}

TEST(TuneTest, ComesWithinFivePercentOfTheBestOfFivePipelines) {
  for (const Pipeline& pipeline : pipelines()) {
    Machine machine(pipeline.costs);
    const Tuned tuned = tuned_by(machine);
    EXPECT_GT(machine.rate(tuned.chosen.setting), 0.95 * machine.best()) << pipeline.name << '\n' << tuned.str();
    EXPECT_LE(tuned.trials.size(), 12U);
  }
}

TEST(TuneTest, DoesSoWithNoise) {
  for (const Pipeline& pipeline : pipelines()) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      Machine machine(pipeline.costs, 0.02, seed);
      const Tuned tuned = tuned_by(machine);
      EXPECT_GT(machine.rate(tuned.chosen.setting), 0.91 * machine.best()) << pipeline.name << ' ' << seed << '\n'
                                                                           << tuned.str();
      EXPECT_LE(tuned.trials.size(), 12U);
    }
  }
}

TEST(TuneTest, TakesTheFewestWorkersThatKeepTheRate) {
  Machine decode(pipelines()[0].costs);
  EXPECT_EQ(tuned_by(decode).chosen.setting.workers, 6);
  Machine trainer({.sample_s = 1e-3, .step_s = 2e-3, .usable_cpus = 8});
  EXPECT_EQ(tuned_by(trainer).chosen.setting.workers, 1);
}

TEST(TuneTest, TakesNoWorkersWhereTheyDoNotHelp) {
  Machine machine({.sample_s = 1e-6, .step_s = 1e-3, .hand_over_s = 0.2e-3});
  EXPECT_EQ(tuned_by(machine).chosen.setting.kind, WorkerKind::kInline);
}

TEST(TuneTest, NeverRunsWhatWouldExceedTheMemoryBudget) {
  PipelineCosts costs = pipelines()[1].costs;
  costs.base_bytes = 1e9;
  costs.worker_bytes = 3e8;
  Machine machine(costs);
  const Tuned tuned = tuned_by(machine, {.kinds = {WorkerKind::kFork}, .memory_budget = 3'500'000'000});
  EXPECT_LE(machine.most_bytes, 3.5e9);
  EXPECT_EQ(tuned.chosen.setting.workers, 8) << tuned.str();
}

TEST(TuneTest, ComesWithinFivePercentOfTheBestBelowABudget) {
  constexpr double kBudget = 2e9;
  for (const Pipeline& pipeline : pipelines()) {
    PipelineCosts costs = pipeline.costs;
    costs.base_bytes = 1e9;
    costs.worker_bytes = 2e8;
    costs.batch_bytes = 2e7;
    Machine machine(costs);
    const Tuned tuned = tuned_by(machine, {.kinds = {WorkerKind::kFork},
                                           .memory_budget = static_cast<std::uint64_t>(kBudget),
                                           .batch_bytes = 20'000'000});
    EXPECT_LE(machine.most_bytes, kBudget) << pipeline.name << '\n' << tuned.str();
    EXPECT_GT(machine.rate(tuned.chosen.setting), 0.95 * machine.best(kBudget, WorkerKind::kFork))
        << pipeline.name << '\n'
        << tuned.str();
  }
}

TEST(TuneTest, DeepensTheQueueOfABurstyPipeline) {
  Machine machine(pipelines()[4].costs);
  const Tuned tuned = tuned_by(machine);
  EXPECT_GT(tuned.chosen.setting.prefetch, 4) << tuned.str();
}

TEST(TuneTest, FindsAPeakBetweenTwoDoublings) {
  Machine machine({.sample_s = 4e-3, .step_s = 1e-5, .crosstalk_s = 60e-6, .usable_cpus = 64});
  const Tuned tuned = tuned_by(machine, {.usable_cpus = 64});
  EXPECT_GT(machine.rate(tuned.chosen.setting), 0.95 * machine.best()) << tuned.str();
}

TEST(TuneTest, LeavesRefusedSettingsOut) {
  const Tuned tuned = tune(
      [](const WorkerSetting& setting) -> Trial {
        if (setting.workers > 2) throw MemoryError("no room");
        return {.samples_per_s = 100.0 + 100 * setting.workers};
      },
      {.usable_cpus = 8});
  EXPECT_EQ(tuned.chosen.setting.workers, 2);
  EXPECT_NE(tuned.why.find("no room"), std::string::npos) << tuned.why;
}

TEST(TuneTest, ChoosesAmongTheTrialsBeforeOneThatWasStopped) {
  int trials = 0;
  const Tuned tuned = tune(
      [&](const WorkerSetting& setting) -> Trial {
        if (++trials == 4) return {.stopped = true};
        return {.samples_per_s = 100.0 + 100 * setting.workers};
      },
      {.usable_cpus = 8});
  EXPECT_EQ(tuned.trials.size(), 3U);
  EXPECT_EQ(tuned.chosen.setting.workers, 2);
  EXPECT_TRUE(tuned.interrupted);
  EXPECT_THROW(static_cast<void>(tune([](const WorkerSetting&) { return Trial{.stopped = true}; })), Error);
}

TEST(TuneTest, KeepsEveryKindOfWorkerWithinTheMemoryBudget) {
  double most_bytes = 0;
  const auto measure = [&](const WorkerSetting& setting) -> Trial {
    const double bytes = 1e9 + (setting.processes() ? 5e8 * setting.workers : 0);
    most_bytes = std::max(most_bytes, bytes);
    return {.samples_per_s = 100.0 * std::min(6, std::max(1, setting.workers)), .memory_bytes = bytes};
  };
  const std::vector<WorkerKind> kinds = {WorkerKind::kThread, WorkerKind::kFork};
  const Tuned tuned = tune(measure, {.kinds = kinds, .memory_budget = 2'000'000'000, .usable_cpus = 8});
  EXPECT_LE(most_bytes, 2e9);
  EXPECT_EQ(tuned.chosen.setting.workers, 6) << tuned.str();
}

int trials_of(const Tuned& tuned, const WorkerSetting& setting) {
  return static_cast<int>(std::count_if(tuned.trials.begin(), tuned.trials.end(),
                                        [&](const Trial& trial) { return trial.setting == setting; }));
}

TEST(TuneTest, RunsTheFastestAndTheChosenAgainWhereEachRanOnce) {
  std::map<int, int> runs;  // by workers, also with a deeper queue
  const Tuned tuned = tune(
      [&](const WorkerSetting& setting) {
        const double rate = setting.workers == 0 ? 100 : setting.workers == 1 ? 199 : 200;
        return Trial{.samples_per_s = rate * (1 + 1e-3 * runs[setting.workers]++)};
      },
      {.usable_cpus = 8});
  EXPECT_EQ(tuned.chosen.setting.workers, 1);
  EXPECT_EQ(trials_of(tuned, tuned.chosen.setting), 3) << tuned.str();
  EXPECT_EQ(trials_of(tuned, tuned.fastest.setting), 3);
  EXPECT_EQ(tuned.chosen.runs, 3);
  EXPECT_GT(tuned.chosen.spread, 0);
  EXPECT_NE(tuned.why.find("its 3 runs are within 0.3 %"), std::string::npos) << tuned.why;
  EXPECT_NE(tuned.str().find("one run"), std::string::npos);
}

TEST(TuneTest, TakesRepetitionsThatAgreeAtTheirWord) {
  const Tuned tuned = tune([](const WorkerSetting&) { return Trial{.samples_per_s = 1, .runs = 3}; });
  EXPECT_EQ(trials_of(tuned, tuned.chosen.setting), 1);
  EXPECT_EQ(tuned.str().find("one run"), std::string::npos);
}

TEST(TuneTest, SaysWhatOtherProgramsHad) {
  const Measure disturbed = [](const WorkerSetting&) { return Trial{.samples_per_s = 1, .others_share = 0.5}; };
  EXPECT_NE(tune(disturbed).str().find("Other programs had 50 % of the processors"), std::string::npos);
}

TEST(TuneTest, GivesCsvAndAPicture) {
  Machine machine(pipelines()[0].costs);
  const Tuned tuned = tuned_by(machine);
  const std::string csv = tuned.csv();
  EXPECT_EQ(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')), 1 + tuned.trials.size());
  EXPECT_NE(tuned.svg().find("Recommended: " + tuned.chosen.setting.str()), std::string::npos);
}

TEST(TuneTest, SaysWhereNothingCouldRun) {
  EXPECT_THROW(static_cast<void>(tune([](const WorkerSetting&) -> Trial { throw MemoryError("no room"); })),
               ConfigError);
}

TEST(TuneTest, TriesOtherKindsWhereTheSearchEnds) {
  Machine machine(pipelines()[0].costs);
  const auto measure = [&](const WorkerSetting& setting) {
    Trial trial = machine(setting);
    if (setting.kind == WorkerKind::kThread) trial.samples_per_s *= 0.5;  // one interpreter, one lock
    return trial;
  };
  const Tuned tuned = tune(measure, {.kinds = {WorkerKind::kThread, WorkerKind::kFork}, .usable_cpus = 6});
  EXPECT_EQ(tuned.chosen.setting.kind, WorkerKind::kFork) << tuned.str();
}

TEST(TuneTest, ComparesWithTheRulesOfThumb) {
  const std::vector<RuleOfThumb> rules = rules_of_thumb(WorkerKind::kFork, 16, 32);
  EXPECT_EQ(rules[0].setting.workers, 12);
  EXPECT_EQ(rules[1].setting.workers, 4);
  EXPECT_EQ(rules_of_thumb(WorkerKind::kFork, 1, 1)[1].setting.kind, WorkerKind::kInline);
  Machine machine(pipelines()[0].costs);
  EXPECT_GT(tuned_by(machine).rules.front().samples_per_s, 0);
}

TEST(TuneTest, RefusesOptionsThatMakeNoSense) {
  const Measure any = [](const WorkerSetting&) { return Trial{.samples_per_s = 1}; };
  EXPECT_THROW(static_cast<void>(tune(any, {.kinds = {}})), ConfigError);
  EXPECT_THROW(static_cast<void>(tune(any, {.kinds = {WorkerKind::kInline}})), ConfigError);
  EXPECT_THROW(static_cast<void>(tune(any, {.most_trials = 1})), ConfigError);
}

}  // namespace
}  // namespace infeed
