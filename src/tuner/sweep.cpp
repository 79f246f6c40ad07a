#include "infeed/tuner/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "infeed/base/error.h"
#include "memory/limits.h"
#include "tuner/cores.h"
#include "tuner/median.h"

namespace infeed {
namespace {

constexpr double kTolerance = 0.02;
constexpr double kMostNoise = 0.1;  // rows that differ by more are not the same, however noisy they were
constexpr double kNearlyAll = 0.9;
constexpr double kTrialShare = 0.25;  // of the time of a run
constexpr std::int64_t kFewestBatches = 8;

/// Each setting with each value.
template <typename Values, typename Value>
std::vector<WorkerSetting> crossed(const std::vector<WorkerSetting>& settings, const Values& values,
                                   Value WorkerSetting::*which) {
  std::vector<WorkerSetting> all;
  for (WorkerSetting setting : settings) {
    for (const Value value : values) {
      setting.*which = value;
      all.push_back(setting);
    }
  }
  return all;
}

std::vector<WorkerSetting> settings_of(const SweepOptions& options) {
  std::vector<WorkerSetting> all = {{}};
  all = crossed(all, options.job.device.empty() ? std::vector<bool>{true} : options.pinned, &WorkerSetting::pinned);
  all = crossed(all, options.kinds, &WorkerSetting::kind);
  all = crossed(all, options.threads, &WorkerSetting::threads);
  all = crossed(all, options.prefetch, &WorkerSetting::prefetch);
  all = crossed(all, options.workers, &WorkerSetting::workers);
  std::vector<WorkerSetting> settings;
  for (WorkerSetting setting : all) {
    if (setting.workers == 0) setting = {.kind = WorkerKind::kInline, .pinned = setting.pinned};
    if (std::find(settings.begin(), settings.end(), setting) == settings.end()) settings.push_back(setting);
  }
  return settings;
}

/// The runs of one setting.
struct Runs {
  WorkerSetting setting;
  std::vector<RunFigures> figures = {};
  std::string refused = {};

  [[nodiscard]] double middle(double RunFigures::*which) const {
    std::vector<double> values;
    for (const RunFigures& run : figures) values.push_back(run.*which);
    return median(values);
  }
  [[nodiscard]] double rate_spread() const {
    std::vector<double> rates;
    for (const RunFigures& run : figures) rates.push_back(run.samples_per_s);
    return spread(rates);
  }
};

bool run_once(const RunSetting& run, Runs& runs) {
  if (!runs.refused.empty()) return true;
  try {
    RunFigures figures = run(runs.setting);
    if (figures.stopped) return false;
    runs.figures.push_back(std::move(figures));
  } catch (const ConfigError& error) {
    runs.refused = error.what();
  } catch (const MemoryError& error) {
    runs.refused = error.what();
  } catch (const WorkerError& error) {  // as of workers that the system had no memory for
    runs.refused = error.what();
  }
  return true;
}

SweepRow row_of(const Runs& runs, std::int64_t samples) {
  SweepRow row{.setting = runs.setting,
               .spread = runs.rate_spread(),
               .runs = static_cast<int>(runs.figures.size()),
               .refused = runs.refused};
  if (runs.figures.empty()) return row;
  row.figures.verdict = runs.figures.back().verdict;
  row.figures.finding = runs.figures.back().finding;
  for (double RunFigures::*which : {&RunFigures::samples_per_s, &RunFigures::memory_bytes, &RunFigures::utilisation,
                                    &RunFigures::transfer_share, &RunFigures::first_batch_ms, &RunFigures::cpu_s,
                                    &RunFigures::others_share, &RunFigures::sample_s, &RunFigures::cpu_share})
    row.figures.*which = runs.middle(which);
  row.epoch_s = row.figures.samples_per_s > 0 ? static_cast<double>(samples) / row.figures.samples_per_s : 0;
  return row;
}

const SweepRow& fastest_of(const std::vector<SweepRow>& rows) {
  return *std::max_element(rows.begin(), rows.end(), [](const SweepRow& a, const SweepRow& b) {
    return a.figures.samples_per_s < b.figures.samples_per_s;
  });
}

void choose(SweepReport& report) {
  const SweepRow& fastest = fastest_of(report.rows);
  if (!(fastest.figures.samples_per_s > 0))
    throw ConfigError(fmt::format("no setting could run: {}", report.rows.back().refused));
  const double given_away = std::clamp(fastest.spread / 2, kTolerance, kMostNoise);
  const auto size = [](const SweepRow& row) {
    return std::tuple(row.setting.claimants(), row.figures.memory_bytes, row.setting.depth());
  };
  report.chosen = fastest;
  for (const SweepRow& row : report.rows) {
    if (row.figures.samples_per_s >= fastest.figures.samples_per_s * (1 - given_away) &&
        size(row) < size(report.chosen))
      report.chosen = row;
  }
  const RunFigures& figures = report.chosen.figures;
  report.why = fmt::format("{:.0f} samples/s in {:.0f} MB", figures.samples_per_s, figures.memory_bytes / 1e6);
  report.why += report.chosen.setting == fastest.setting
                    ? ", the fastest here"
                    : fmt::format(", within {:.0f} % of the fastest ({}: {:.0f}) with less", given_away * 100,
                                  fastest.setting.str(), fastest.figures.samples_per_s);
  if (figures.utilisation >= kNearlyAll)
    report.why +=
        fmt::format("; the step runs {:.0f} % of the time, so more workers cannot help", figures.utilisation * 100);
  report.why += ". " + figures.finding;
}

std::vector<MeasuredRow> measured(const std::vector<SweepRow>& rows) {
  std::vector<MeasuredRow> measured;
  for (const SweepRow& row : rows) {
    if (row.figures.samples_per_s > 0)
      measured.push_back({row.setting, row.figures.samples_per_s, row.figures.memory_bytes, row.figures.utilisation});
  }
  return measured;
}

// What the processes took beside the workers' samples, over the time that the step took.
double trainer_cpus(const RunFigures& figures, double usable_cpus) {
  const double step_s = figures.utilisation / figures.samples_per_s;
  if (step_s <= 0) return 0;
  return std::clamp((figures.cpu_s - figures.sample_s * figures.cpu_share) / step_s, 0.0, usable_cpus);
}

void add_model(SweepReport& report, const SweepOptions& options) {
  const double cpus = read_usable_cpus();
  const int cores = physical_cores();
  report.rules = rules_of_thumb(options.kinds.empty() ? WorkerKind::kThread : options.kinds.front(),
                                cores > 0 ? cores : static_cast<int>(cpus), cpus);
  const std::vector<MeasuredRow> rows = measured(report.rows);
  const RunFigures& chosen = report.chosen.figures;
  if (rows.size() >= 2)
    report.fit = fit_costs(
        rows, {.cpu_share = chosen.cpu_share, .trainer_cpus = trainer_cpus(chosen, cpus), .usable_cpus = cpus});
  for (RuleOfThumb& rule : report.rules) {
    const auto ran =
        std::find_if(rows.begin(), rows.end(), [&](const MeasuredRow& row) { return row.setting == rule.setting; });
    rule.measured = ran != rows.end();
    if (rule.measured) rule.samples_per_s = ran->samples_per_s;
    if (!rule.measured && rows.size() >= 2) rule.samples_per_s = predict(report.fit.costs, rule.setting).samples_per_s;
  }
}

/// All settings, round after round.
class Rounds {
 public:
  /// `rounds`: that there will be in all.
  Rounds(const SweepOptions& options, int rounds)
      : options_(options), settings_(settings_of(options)), runs_(static_cast<int>(settings_.size()) * rounds) {}

  [[nodiscard]] const std::vector<WorkerSetting>& settings() const noexcept { return settings_; }
  [[nodiscard]] bool interrupted() const noexcept { return interrupted_; }

  /// So many of them, or those before one that was stopped.
  [[nodiscard]] std::vector<Runs> go(const RunSetting& run, int rounds) {
    std::vector<Runs> all;
    for (const WorkerSetting& setting : settings_) all.push_back({setting});
    for (int round = 0; round < rounds && !interrupted_; ++round) {
      for (Runs& one : all) {
        if (options_.on_progress) options_.on_progress(++run_, runs_, one.setting);
        if (run_once(run, one)) continue;
        interrupted_ = true;
        break;
      }
    }
    return all;
  }

 private:
  const SweepOptions& options_;
  std::vector<WorkerSetting> settings_;
  int runs_;
  int run_ = 0;
  bool interrupted_ = false;
};

/// As many as take `seconds` a run in the mean of all settings, by trial runs of each.
std::int64_t common_batches(const std::vector<Runs>& trials, const JobOptions& job) {
  double batches_s = 0;  // a batch of each
  int able = 0;
  for (const Runs& trial : trials) {
    if (trial.figures.empty()) continue;
    batches_s += static_cast<double>(job.batch_size) / trial.figures.front().samples_per_s;
    ++able;
  }
  return able == 0 ? 0 : std::max<std::int64_t>(kFewestBatches, std::llround(job.seconds * able / batches_s));
}

void check(const SweepOptions& options) {
  if (settings_of(options).empty() || options.repetitions < 1)
    throw ConfigError("there is nothing to sweep: give kinds, workers, threads, prefetch, pinned and repetitions.");
}

SweepReport report_of(const std::vector<Runs>& all, const SweepOptions& options, std::int64_t samples,
                      bool interrupted) {
  SweepReport report;
  report.interrupted = interrupted;
  for (const Runs& one : all) {
    if (!one.figures.empty() || !one.refused.empty()) report.rows.push_back(row_of(one, samples));
    report.others_share += one.middle(&RunFigures::others_share) / static_cast<double>(all.size());
  }
  if (report.rows.empty()) throw Error("the sweep was stopped before its first run was done.");
  choose(report);
  add_model(report, options);
  return report;
}

}  // namespace

SweepReport sweep(const Dataset& dataset, const SweepOptions& options) {
  check(options);
  JobOptions job = options.job;
  const bool needs_trials = job.batches == 0 && settings_of(options).size() > 1;
  Rounds rounds(options, options.repetitions + (needs_trials ? 1 : 0));
  int most_workers = 0;
  for (const WorkerSetting& setting : rounds.settings()) most_workers = std::max(most_workers, setting.workers);
  const RunSetting run = [&](const WorkerSetting& setting) {
    JobOptions its = job;
    its.warm_up_batches += most_workers - setting.workers;  // all begin with the same batch
    return run_job(dataset, setting, its);
  };
  std::vector<Runs> trials;
  if (needs_trials) {
    job.seconds = options.job.seconds * kTrialShare;
    trials = rounds.go(run, 1);
    job.batches = common_batches(trials, options.job);
  }
  std::vector<Runs> all = rounds.go(run, options.repetitions);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    if (all[i].figures.empty() && all[i].refused.empty()) all[i] = std::move(trials[i]);  // it was stopped before
  }
  return report_of(all, options, dataset.size(), rounds.interrupted());
}

SweepReport sweep(const RunSetting& run, const SweepOptions& options, std::int64_t samples) {
  check(options);
  Rounds rounds(options, options.repetitions);
  const std::vector<Runs> all = rounds.go(run, options.repetitions);
  return report_of(all, options, samples, rounds.interrupted());
}

}  // namespace infeed
