#pragma once
/// One training job under many settings: which suits this machine, this data and this step?
///
///   infeed::SweepReport report = infeed::sweep(dataset, {.workers = {0, 1, 2, 4}, .job = {.batch_size = 64, .step_ms = 20}});
///   std::puts(report.str().c_str());
///   std::ofstream("sweep.svg") << report.svg();

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/state.h"
#include "infeed/batch/batch.h"
#include "infeed/dataset/dataset.h"
#include "infeed/loader/stats.h"
#include "infeed/tuner/fit.h"
#include "infeed/tuner/model.h"
#include "infeed/tuner/tune.h"

namespace infeed {

/// What is done with every setting.
struct JobOptions {
  std::int64_t batch_size = 64;
  bool shuffle = true;
  std::uint64_t seed = 0;
  /// The trainer's step, in the thread that takes the batches. Default empty: it sleeps for step_ms, as a thread does
  /// whose device computes.
  std::function<void(Batch&)> step = {};
  double step_ms = 0;
  /// Where batches go before the step: "simulated", or a device by name ("cuda:0"). Default empty: they stay here.
  std::string device = {};
  /// Of the simulated device, bytes per second. Default 12 GB/s.
  double device_bytes_per_s = 12e9;
  std::uint64_t memory_limit = 0;  ///< the loader's
  std::string worker_executable = {};
  double seconds = 2;               ///< measured, of each run
  std::int64_t batches = 0;         ///< rather than so many seconds; 0: as many as they allow
  int warm_up_batches = 8;          ///< and one for each worker: prefetch, caches and pages are then warm
  std::function<bool()> stop = {};  ///< asked for each batch; true ends early
};

/// One run.
struct RunFigures {
  double samples_per_s = 0;
  double memory_bytes = 0;    ///< proportional set size of all processes
  double utilisation = 0;     ///< share of the time that the step ran
  double transfer_share = 0;  ///< share of the time that copies ran
  double first_batch_ms = 0;  ///< from the loader's construction
  double cpu_s = 0;           ///< a sample, of all processes: the step's too
  double others_share = 0;    ///< of the usable processors: what other programs took meanwhile
  double sample_s = 0;        ///< a worker's time for a sample
  double cpu_share = 1;       ///< of that: on a processor
  bool stopped = false;       ///< early: no figures
  std::string verdict = {};
  std::string finding = {};  ///< the verdict without its advice, which one has measured already
};

/// Makes a loader, warms it up, measures. Throws what the loader and the step throw.
[[nodiscard]] INFEED_API RunFigures run_job(const Dataset& dataset, const WorkerSetting& setting,
                                            const JobOptions& job);

/// A run of a setting, of anything that has workers. `stopped` ends the sweep or search; ConfigError and MemoryError make
/// the setting a refused one.
using RunSetting = std::function<RunFigures(const WorkerSetting&)>;

/// For tune(): runs the job `repetitions` times for each trial, and gives the medians.
[[nodiscard]] INFEED_API Measure measure_job(const Dataset& dataset, JobOptions job, int repetitions = 1);
/// The same of runs that are not the loader's.
[[nodiscard]] INFEED_API Measure measure_runs(RunSetting run, int repetitions = 1);

struct SweepOptions {
  std::vector<WorkerKind> kinds = {WorkerKind::kThread, WorkerKind::kFork};
  std::vector<int> workers = {0, 1, 2, 4, 8};  ///< 0 once, whatever the kinds
  std::vector<int> threads = {1};              ///< of each worker
  std::vector<int> prefetch = {0};             ///< 0: the loader's default
  std::vector<bool> pinned = {true};           ///< only where a device is named
  /// Of each setting, in turns: a disturbance falls on all of them. Default 3.
  int repetitions = 3;
  JobOptions job = {};
  /// Before each run, and each trial run of sweep(): which of how many, and its setting.
  std::function<void(int run, int runs, const WorkerSetting& setting)> on_progress = {};
};

struct SweepRow {
  WorkerSetting setting;
  RunFigures figures;  ///< medians
  double spread = 0;   ///< of the rate: (largest - smallest) / median
  int runs = 0;
  double epoch_s = 0;
  std::string refused = {};  ///< why it could not run
};

struct SweepReport {
  std::vector<SweepRow> rows;  ///< those that ran
  SweepRow chosen;             ///< the smallest within 2 % of the fastest, or within its spread
  std::string why;
  Fit fit;  ///< of the model to the rows; no costs where there are fewer than 2
  std::vector<RuleOfThumb> rules;
  double others_share = 0;  ///< mean: above 5 % the rows are too low
  bool interrupted = false;

  /// Table, recommendation, model and rules, for people.
  [[nodiscard]] INFEED_API std::string str() const;
  /// A line for each row, with a head.
  [[nodiscard]] INFEED_API std::string csv() const;
  [[nodiscard]] INFEED_API State to_state() const;
  /// Rate and memory over workers, a line for each kind, the model dashed: a picture that needs nothing else.
  [[nodiscard]] INFEED_API std::string svg() const;
};

/// Each run goes through the same batches, so that a costly sample falls on all settings or on none: a short trial run of
/// each setting tells how many batches take job.seconds a run in the mean. A job with `batches`, or a single setting,
/// needs none.
/// Throws ConfigError where there is nothing to run, or where nothing could run.
[[nodiscard]] INFEED_API SweepReport sweep(const Dataset& dataset, const SweepOptions& options);
/// The same of runs that are not the loader's, as long as these like; of the job only the device's name counts.
/// `samples`: of an epoch.
[[nodiscard]] INFEED_API SweepReport sweep(const RunSetting& run, const SweepOptions& options, std::int64_t samples);

}  // namespace infeed
