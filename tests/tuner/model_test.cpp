#include "infeed/tuner/model.h"

#include <gtest/gtest.h>

#include <vector>

#include "infeed/base/error.h"
#include "infeed/tuner/fit.h"
#include "tuner/published_sweeps.h"

namespace infeed {
namespace {

WorkerSetting forked(int workers, int prefetch = 0) {
  return {.kind = workers == 0 ? WorkerKind::kInline : WorkerKind::kFork, .workers = workers, .prefetch = prefetch};
}
WorkerSetting pageable(int workers) {
  WorkerSetting setting = forked(workers);
  setting.pinned = false;
  return setting;
}

PipelineCosts decoding() {
  return {.sample_s = 4e-3,
          .step_s = 0.5e-3,
          .hand_over_s = 20e-6,
          .usable_cpus = 8,
          .base_bytes = 1e9,
          .worker_bytes = 2e8,
          .batch_bytes = 4e7};
}
std::vector<MeasuredRow> rows_of(const PipelineCosts& costs, const std::vector<WorkerSetting>& settings) {
  std::vector<MeasuredRow> rows;
  for (const WorkerSetting& setting : settings) {
    const Prediction p = predict(costs, setting);
    rows.push_back({setting, p.samples_per_s, p.memory_bytes, p.utilisation});
  }
  return rows;
}

TEST(PredictTest, AddsAllTimesWithoutWorkers) {
  const Prediction p = predict({.sample_s = 4e-3, .step_s = 1e-3}, forked(0));
  EXPECT_NEAR(p.samples_per_s, 200, 1e-9);
  EXPECT_NEAR(p.utilisation, 0.2, 1e-9);
}

TEST(PredictTest, ReadsBesideTheCopiesWithoutWorkers) {
  const PipelineCosts costs{.sample_s = 4e-3, .step_s = 1e-3, .copy_s = 2e-3};
  EXPECT_NEAR(predict(costs, forked(0)).samples_per_s, 250, 1e-9);
}

TEST(PredictTest, RisesWithTheWorkersUntilTheTrainerIsTheLimit) {
  const PipelineCosts costs{.sample_s = 4e-3, .step_s = 1e-3};
  EXPECT_NEAR(predict(costs, forked(2)).samples_per_s, 500, 1e-9);
  EXPECT_EQ(predict(costs, forked(2)).station, Station::kWorkers);
  EXPECT_NEAR(predict(costs, forked(8)).samples_per_s, 1000, 1e-9);
  EXPECT_EQ(predict(costs, forked(8)).station, Station::kTrainer);
}

TEST(PredictTest, DecodersShareTheProcessorsWhileReadersSleep) {
  const PipelineCosts decode{.sample_s = 4e-3, .step_s = 1e-4, .usable_cpus = 2};
  EXPECT_NEAR(predict(decode, forked(8)).samples_per_s, 500, 1e-9);
  EXPECT_EQ(predict(decode, forked(8)).station, Station::kProcessors);
  const PipelineCosts read{.sample_s = 4e-3, .cpu_share = 0, .step_s = 1e-4, .usable_cpus = 2};
  EXPECT_NEAR(predict(read, forked(8)).samples_per_s, 2000, 1e-9);
}

TEST(PredictTest, ATrainerOnTheProcessorsTakesThemFromTheWorkers) {
  const PipelineCosts costs{.sample_s = 1e-3, .step_s = 1e-3, .trainer_cpus = 2, .usable_cpus = 2};
  EXPECT_NEAR(predict(costs, forked(4)).samples_per_s, 1 / 1.5e-3, 1e-6);
}

TEST(PredictTest, PageableMemoryHoldsUpTheStep) {
  const PipelineCosts costs{.sample_s = 1e-3, .step_s = 1e-3, .copy_s = 0.5e-3, .pageable_factor = 2};
  EXPECT_NEAR(predict(costs, forked(4)).samples_per_s, 1000, 1e-9);
  EXPECT_NEAR(predict(costs, pageable(4)).samples_per_s, 500, 1e-9);
}

TEST(PredictTest, CountsMemoryByProcessesAndBatchesInFlight) {
  EXPECT_NEAR(predict(decoding(), forked(4, 10)).memory_bytes, 1e9 + 4 * 2e8 + 10 * 4e7, 1);
  EXPECT_NEAR(predict(decoding(), {.workers = 4, .prefetch = 2}).memory_bytes, 1e9 + 2 * 4e7, 1);
}

TEST(PredictTest, RefusesCostsThatMakeNoSense) {
  EXPECT_THROW(static_cast<void>(predict({}, forked(1))), ConfigError);
  EXPECT_THROW(static_cast<void>(predict({.sample_s = -1, .step_s = 1}, forked(1))), ConfigError);
}

TEST(FitTest, FitsTheClassifiersRowsWithinTenPercent) {
  const Fit fit = fit_costs(published_classifier());
  EXPECT_LT(fit.rate_error, 0.10) << fit.str();
  EXPECT_LT(fit.utilisation_error, 0.10) << fit.str();
}

TEST(FitTest, FitsThePicturesRowsWithinTenPercent) {
  const Fit fit = fit_costs(published_pictures());
  EXPECT_LT(fit.rate_error, 0.10) << fit.str();
  EXPECT_LT(fit.memory_error, 0.10) << fit.str();
  EXPECT_LT(fit.utilisation_error, 0.10) << fit.str();
}

TEST(FitTest, FindsCostsThatOneCouldMeasure) {
  const PipelineCosts costs = fit_costs(published_pictures()).costs;
  EXPECT_NEAR(costs.step_s, 1.45e-3, 0.1e-3) << costs.str();
  EXPECT_NEAR(costs.sample_s, 0.7e-3, 0.2e-3) << costs.str();
  EXPECT_NEAR(costs.worker_bytes, 3.6e9, 0.3e9) << costs.str();
  EXPECT_LT(costs.hand_over_s, 0.2e-3) << costs.str();
}

TEST(FitTest, RecoversRowsThatTheModelMade) {
  const Fit fit = fit_costs(rows_of(decoding(), {forked(0), forked(1), forked(2), forked(4), forked(8), forked(16)}),
                            {.usable_cpus = 8, .batch_bytes = 4e7});
  EXPECT_LT(fit.rate_error, 0.01) << fit.str();
  EXPECT_NEAR(fit.costs.sample_s, 4e-3, 0.1e-3);
  EXPECT_NEAR(fit.costs.step_s, 0.5e-3, 0.03e-3);
  EXPECT_LT(fit.memory_error, 0.01) << fit.str();
}

TEST(FitTest, RecoversCopiesFromPinnedAndPageableRows) {
  const PipelineCosts costs{.sample_s = 1e-3, .step_s = 0.2e-3, .copy_s = 0.4e-3, .pageable_factor = 2};
  const Fit fit =
      fit_costs(rows_of(costs, {forked(0), forked(1), forked(2), forked(4), pageable(0), pageable(1), pageable(4)}),
                {.hand_over_s = 0});
  EXPECT_LT(fit.rate_error, 0.02) << fit.str();
  EXPECT_NEAR(fit.costs.copy_s, 0.4e-3, 0.05e-3) << fit.str();
}

TEST(FitTest, HalfOfTheRowsPredictTheOthers) {
  std::vector<PipelineCosts> pipelines(5, decoding());
  pipelines[1].cpu_share = 0;        // read-bound
  pipelines[2].copy_s = 1e-3;        // transfer-bound
  pipelines[3].step_s = 3e-3;        // trainer-bound
  pipelines[4].unevenness_s = 2e-3;  // bursty
  for (const PipelineCosts& costs : pipelines) {
    const KnownCosts known{.cpu_share = costs.cpu_share, .copy_s = costs.copy_s, .usable_cpus = 8};
    const Fit fit = fit_costs(rows_of(costs, {forked(0), forked(2), forked(6), forked(12)}), known);
    const Fit others = judge_costs(fit.costs, rows_of(costs, {forked(1), forked(4), forked(8), forked(16)}));
    EXPECT_LT(others.rate_error, 0.10) << costs.str() << fit.str();
    EXPECT_LT(others.memory_error, 0.10) << costs.str() << fit.str();
  }
}

TEST(FitTest, AsksForTwoRowsWithRates) {
  EXPECT_THROW(static_cast<void>(fit_costs({{forked(1), 100}})), ConfigError);
  EXPECT_THROW(static_cast<void>(fit_costs({{forked(1), 100}, {forked(2), 0}})), ConfigError);
}

}  // namespace
}  // namespace infeed
