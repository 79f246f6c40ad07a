// Does the loader find its number of workers? Five pipelines (pipelines.h). Every number of workers from 0 on is measured,
// in turns; then tune() searches and a loader with num_workers = auto trains until it rests; then the sweep's fastest
// setting, the tuned one and the loader that went on by itself take turns.
// Read: rates by that of the sweep's fastest. The model gets every other row of the sweep and foretells the rest: how far
// off, row by row. What goes over the budget is above 100 %.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "auto_run.h"
#include "bed.h"
#include "infeed/tuner/fit.h"
#include "infeed/tuner/sweep.h"
#include "infeed/tuner/tune.h"
#include "pipelines.h"

namespace bench {
namespace {

constexpr double kPlenty = 256e6;  // bytes more than any row of the sweep took
constexpr double kAlmost = 0.9;    // of a worker more than the budget is for
constexpr int kTrials = 12;

infeed::SweepReport sweep(const Bed& bed, const Pipeline& pipeline) {
  infeed::SweepOptions options{.kinds = {pipeline.kind},
                               .workers = {},
                               .prefetch = pipeline.depths,
                               .repetitions = bed.size(5, 1),
                               .job = pipeline.job};
  for (int workers = 0; workers <= bed.size(pipeline.most_workers, 3); ++workers) options.workers.push_back(workers);
  return infeed::sweep(*pipeline.dataset, options);
}

double memory_budget(const Pipeline& pipeline, const infeed::SweepReport& swept) {
  double most = 0, with = 0, with_one_more = 0;
  for (const auto& [setting, figures, spread, runs, epoch_s, refused] : swept.rows) {
    most = std::max(most, figures.memory_bytes);
    if (setting.workers == pipeline.budget_workers) with = figures.memory_bytes;
    if (setting.workers == pipeline.budget_workers + 1) with_one_more = figures.memory_bytes;
  }
  return pipeline.budget_workers > 0 ? with + kAlmost * (with_one_more - with) : most + kPlenty;
}

/// Of those within the budget.
const infeed::SweepRow& fastest(const infeed::SweepReport& swept, double budget) {
  const auto rate = [budget](const infeed::SweepRow& row) {
    return row.figures.memory_bytes <= budget ? row.figures.samples_per_s : 0;
  };
  return *std::max_element(swept.rows.begin(), swept.rows.end(),
                           [&](const auto& a, const auto& b) { return rate(a) < rate(b); });
}

/// Every other row fits the model; a line for each of the rest.
void foretell(const std::string& id, const Pipeline& pipeline, const infeed::SweepReport& swept, Report& report) {
  std::array<std::vector<infeed::MeasuredRow>, 2> halves;
  for (std::size_t i = 0; i < swept.rows.size(); ++i) {
    const infeed::RunFigures& figures = swept.rows[i].figures;
    if (!swept.rows[i].refused.empty()) continue;
    halves[i % 2].push_back({swept.rows[i].setting, figures.samples_per_s, figures.memory_bytes, figures.utilisation});
  }
  infeed::KnownCosts known = pipeline.known;
  const infeed::RunFigures& chosen = swept.chosen.figures;
  known.cpu_share = chosen.cpu_share;
  known.usable_cpus = swept.fit.costs.usable_cpus;
  if (!pipeline.job.device.empty()) known.copy_s = chosen.transfer_share / chosen.samples_per_s;
  const infeed::PipelineCosts costs = infeed::fit_costs(halves[0], known).costs;
  for (const infeed::MeasuredRow& row : halves[1]) {
    const double foretold = infeed::predict(costs, row.setting).samples_per_s;
    report.add({.id = id,
                .what = fmt::format("{}: {}, the model of the other half is off by", pipeline.name, row.setting.str()),
                .unit = "%",
                .rounds = {std::abs(foretold / row.samples_per_s - 1) * 100},
                .better = Better::kLower,
                .must = 10,
                .aim = 5});
  }
}

struct Contest {
  const Pipeline& pipeline;
  const infeed::SweepRow& best;
  const infeed::Tuned& tuned;
  AutoRun& training;

  /// Samples a second of each, a value a round.
  [[nodiscard]] std::vector<Series> run(const Bed& bed) const {
    infeed::JobOptions job = pipeline.job;
    job.seconds = bed.size(1.0, 0.02);
    const auto fixed = [&](const infeed::WorkerSetting& setting) {
      return infeed::run_job(*pipeline.dataset, setting, job).samples_per_s;
    };
    return interleave(std::min(bed.rounds, 3), {[&](std::uint64_t) { return fixed(best.setting); },
                                                [&](std::uint64_t) { return training.rate(job.seconds); },
                                                [&](std::uint64_t) { return fixed(tuned.chosen.setting); }});
  }
};

/// The lines that auto and tune() have in common.
class Lines {
 public:
  Lines(std::string id, Report& report) : id_(std::move(id)), report_(report) {}

  void by_the_fastest(const std::string& who, const Series& rates, const Series& fastest) {
    report_.add({.id = id_,
                 .what = who + ", by the fastest",
                 .unit = "x",
                 .rounds = ratio(rates, fastest),
                 .must = 0.95,
                 .aim = 0.98});
  }
  void at_most(double most, const std::string& what, const char* unit, double value) {
    report_.add({.id = id_, .what = what, .unit = unit, .rounds = {value}, .better = Better::kLower, .must = most});
  }
  void within_budget(const std::string& who, double bytes, double budget) {
    at_most(100, who + ", most memory by the budget", "%", bytes / budget * 100);
  }

 private:
  std::string id_;
  Report& report_;
};

void tell(const std::string& id, const Contest& contest, const std::vector<Series>& rates, double budget,
          Report& report) {
  const auto& [pipeline, best, tuned, training] = contest;
  report.add({.id = id,
              .what = fmt::format("{}: fastest of the sweep, {}", pipeline.name, best.setting.str()),
              .unit = "samples/s",
              .rounds = rates[0]});
  Lines lines(id, report);
  const std::string self = fmt::format("{}: auto, {}", pipeline.name, training.setting());
  lines.by_the_fastest(self, rates[1], rates[0]);
  lines.at_most(kTrials, self + ", changes before", "changes", training.changes_of_convergence());
  lines.within_budget(self, training.most_bytes(), budget);
  const std::string found = fmt::format("{}: tune(), {}", pipeline.name, tuned.chosen.setting.str());
  lines.by_the_fastest(found, rates[2], rates[0]);
  lines.at_most(kTrials, found + ", trials", "trials", static_cast<double>(tuned.trials.size()));
  double most = 0;
  for (const infeed::Trial& trial : tuned.trials) most = std::max(most, trial.memory_bytes);
  lines.within_budget(found, most, budget);
}

void judge(const Bed& bed, const std::string& id, const Pipeline& pipeline, Report& report) {
  const infeed::SweepReport swept = sweep(bed, pipeline);
  const double budget = memory_budget(pipeline, swept);
  const infeed::SweepRow& best = fastest(swept, budget);
  const std::uint64_t batch_bytes =
      pipeline.dataset->schema().row_bytes() * static_cast<std::uint64_t>(pipeline.job.batch_size);
  const infeed::Tuned tuned = infeed::tune(infeed::measure_job(*pipeline.dataset, pipeline.job),
                                           {.kinds = {pipeline.kind},
                                            .max_workers = bed.size(2 * pipeline.most_workers, 3),
                                            .memory_budget = static_cast<std::uint64_t>(budget),
                                            .batch_bytes = batch_bytes,
                                            .most_trials = bed.size(kTrials, 4)});
  AutoRun training(pipeline, static_cast<std::uint64_t>(budget));
  training.converge(bed.size(8.0, 0.02));
  const Contest contest{pipeline, best, tuned, training};
  tell(id, contest, contest.run(bed), budget, report);
  foretell(id, pipeline, swept, report);
}

}  // namespace

void workers_decode(const Bed& bed, Report& report) { judge(bed, "S1", decode_bound(bed), report); }
void workers_read(const Bed& bed, Report& report) { judge(bed, "S2", read_bound(bed), report); }
void workers_transfer(const Bed& bed, Report& report) { judge(bed, "S3", transfer_bound(bed), report); }
void workers_trainer(const Bed& bed, Report& report) { judge(bed, "S4", trainer_bound(bed), report); }
void workers_bursty(const Bed& bed, Report& report) { judge(bed, "S5", bursty(bed), report); }
void workers_budget(const Bed& bed, Report& report) { judge(bed, "S6", read_bound_in_little_memory(bed), report); }

}  // namespace bench
