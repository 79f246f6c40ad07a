#include "infeed/tuner/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "infeed/base/error.h"
#include "tuner/simplex.h"

// Each free cost is looked for as its logarithm in units of the fastest row's cycle, so that all are above 0 and of one
// size. The surface has kinks, where another station becomes the busiest: hence no derivatives, and several starts.

namespace infeed {
namespace {

constexpr double kLeast = 1e-6;  // of the cycle: as good as none
constexpr double kMost = 1e3;    // of the cycle: a sample on a thousand workers
constexpr double kUtilisationWeight = 0.5;
constexpr double kPreferSmall = 1e-4;  // against waits that the rows do not show
constexpr int kMostCalls = 3000;
constexpr double kFirstStep = 0.7;

using Cost = double PipelineCosts::*;

/// A cost that is looked for.
struct Free {
  Cost cost;
  std::array<double, 3> starts;  ///< in cycles
  bool wait;                     ///< of those that are rather small
};

bool differ_in_pinning(const std::vector<MeasuredRow>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const MeasuredRow& row) { return row.setting.pinned != rows.front().setting.pinned; });
}

std::vector<Free> free_costs(const std::vector<MeasuredRow>& rows, const KnownCosts& known) {
  std::vector<Free> free;
  if (!known.sample_s) free.push_back({&PipelineCosts::sample_s, {4, 1, 0.3}, false});
  if (!known.step_s) free.push_back({&PipelineCosts::step_s, {0.9, 0.5, 0.1}, false});
  if (!known.hand_over_s) free.push_back({&PipelineCosts::hand_over_s, {0.05, 0.1, 0.01}, true});
  free.push_back({&PipelineCosts::unevenness_s, {0.1, 0.3, 0.01}, true});
  free.push_back({&PipelineCosts::crosstalk_s, {0.001, 0.01, 0.0001}, true});
  if (differ_in_pinning(rows)) {
    if (!known.copy_s) free.push_back({&PipelineCosts::copy_s, {0.2, 0.5, 0.05}, true});
    free.push_back({&PipelineCosts::pageable_factor, {1, 3, 0.3}, false});
  }
  return free;
}

PipelineCosts known_costs(const KnownCosts& known) {
  PipelineCosts costs;
  costs.sample_s = known.sample_s.value_or(0);
  costs.cpu_share = known.cpu_share.value_or(1);
  costs.step_s = known.step_s.value_or(0);
  costs.trainer_cpus = known.trainer_cpus.value_or(0);
  costs.hand_over_s = known.hand_over_s.value_or(0);
  costs.copy_s = known.copy_s.value_or(0);
  costs.usable_cpus = known.usable_cpus.value_or(costs.usable_cpus);
  return costs;
}

class RateFit {
 public:
  RateFit(const std::vector<MeasuredRow>& rows, const KnownCosts& known)
      : rows_(rows), base_(known_costs(known)), free_(free_costs(rows, known)) {
    double fastest = 0;
    for (const MeasuredRow& row : rows) fastest = std::max(fastest, row.samples_per_s);
    cycle_s_ = 1 / fastest;
  }

  [[nodiscard]] PipelineCosts best() const {
    Minimum best{{}, std::numeric_limits<double>::infinity()};
    for (std::size_t start = 0; start < 3; ++start) {
      std::vector<double> from;
      for (const Free& free : free_) from.push_back(std::log(free.starts[start]));
      for (int again = 0; again < 3; ++again) {  // a simplex that has collapsed on a kink opens anew
        Minimum found =
            minimise([this](const std::vector<double>& at) { return miss(at); }, from, kFirstStep, kMostCalls);
        from = found.at;
        if (found.value < best.value) best = std::move(found);
      }
    }
    return at(best.at);
  }

 private:
  [[nodiscard]] PipelineCosts at(const std::vector<double>& logs) const {
    PipelineCosts costs = base_;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      const double cycles = std::clamp(std::exp(logs[i]), kLeast, kMost);
      const bool factor = free_[i].cost == &PipelineCosts::pageable_factor;
      costs.*free_[i].cost = factor ? 1 + cycles : cycles * cycle_s_;
    }
    return costs;
  }

  [[nodiscard]] double miss(const std::vector<double>& logs) const {
    const PipelineCosts costs = at(logs);
    double sum = 0;
    for (const MeasuredRow& row : rows_) {
      const Prediction predicted = predict(costs, row.setting);
      const double rate = std::log(predicted.samples_per_s / row.samples_per_s);
      sum += rate * rate;
      if (row.utilisation <= 0) continue;
      const double utilisation = std::log(predicted.utilisation / row.utilisation);
      sum += kUtilisationWeight * utilisation * utilisation;
    }
    for (const Free& free : free_) {
      const double cycles = costs.*free.cost / cycle_s_;
      if (free.wait) sum += kPreferSmall * cycles * cycles;
    }
    for (const double log_cycles : logs) {  // beyond the bounds the surface is flat: lead back
      const double beyond = std::max({0.0, std::log(kLeast) - log_cycles, log_cycles - std::log(kMost)});
      sum += kPreferSmall * beyond * beyond;
    }
    return sum;
  }

  const std::vector<MeasuredRow>& rows_;
  PipelineCosts base_;
  std::vector<Free> free_;
  double cycle_s_ = 1;
};

/// The memory's costs, linear in them: one at a time until they rest, none below 0.
class MemoryFit {
 public:
  MemoryFit(const std::vector<MeasuredRow>& rows, const KnownCosts& known) : rows_(rows) {
    bytes_[2] = known.batch_bytes.value_or(0);
    if (known.batch_bytes || depth_follows_workers()) free_ = 2;
  }

  void run(PipelineCosts& costs) {
    constexpr int kRounds = 2000;
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t which = 0; which < free_; ++which) improve(which);
    }
    costs.base_bytes = bytes_[0];
    costs.worker_bytes = bytes_[1];
    costs.batch_bytes = bytes_[2];
  }

 private:
  using Factors = std::array<double, 3>;  ///< 1, worker processes, batches in flight

  [[nodiscard]] static Factors factors(const WorkerSetting& setting) {
    return {1, setting.processes() ? static_cast<double>(setting.workers) : 0,
            setting.claimants() > 0 ? static_cast<double>(setting.depth()) : 1};
  }

  /// Then nobody can tell a batch from a worker, and it counts as the worker's.
  [[nodiscard]] bool depth_follows_workers() const {
    double ratio = 0;
    for (const MeasuredRow& row : rows_) {
      if (row.memory_bytes <= 0 || row.setting.claimants() == 0) continue;
      const Factors x = factors(row.setting);
      if (x[1] == 0 || (ratio > 0 && x[2] / x[1] != ratio)) return false;
      ratio = x[2] / x[1];
    }
    return true;
  }

  // The least squares of the relative errors in one cost, the others held.
  void improve(std::size_t which) {
    double slope = 0, weight = 0;
    for (const MeasuredRow& row : rows_) {
      if (row.memory_bytes <= 0) continue;
      const Factors x = factors(row.setting);
      double rest = row.memory_bytes;
      for (std::size_t other = 0; other < x.size(); ++other) rest -= other == which ? 0 : bytes_[other] * x[other];
      const double scale = row.memory_bytes * row.memory_bytes;
      slope += rest * x[which] / scale;
      weight += x[which] * x[which] / scale;
    }
    if (weight > 0) bytes_[which] = std::max(0.0, slope / weight);
  }

  const std::vector<MeasuredRow>& rows_;
  Factors bytes_{};
  std::size_t free_ = 3;
};

double relative_error(double predicted, double measured) { return std::abs(predicted / measured - 1); }

}  // namespace

Fit judge_costs(const PipelineCosts& costs, const std::vector<MeasuredRow>& rows) {
  Fit fit{.costs = costs};
  for (const MeasuredRow& row : rows) {
    const Prediction predicted = predict(costs, row.setting);
    fit.rate_error = std::max(fit.rate_error, relative_error(predicted.samples_per_s, row.samples_per_s));
    if (row.memory_bytes > 0)
      fit.memory_error = std::max(fit.memory_error, relative_error(predicted.memory_bytes, row.memory_bytes));
    if (row.utilisation > 0)
      fit.utilisation_error = std::max(fit.utilisation_error, relative_error(predicted.utilisation, row.utilisation));
  }
  return fit;
}

Fit fit_costs(const std::vector<MeasuredRow>& rows, const KnownCosts& known) {
  if (rows.size() < 2) throw ConfigError(fmt::format("{} rows cannot be fitted; measure 2 or more.", rows.size()));
  for (const MeasuredRow& row : rows) {
    if (!(row.samples_per_s > 0) || !std::isfinite(row.samples_per_s))
      throw ConfigError(
          fmt::format("{} gave {} samples/s; the rows must have rates above 0.", row.setting.str(), row.samples_per_s));
  }
  PipelineCosts costs = RateFit(rows, known).best();
  MemoryFit(rows, known).run(costs);
  return judge_costs(costs, rows);
}

std::string Fit::str() const {
  std::string text =
      costs.str() + fmt::format("largest error on the measured rows: {:.1f} % of the rate", rate_error * 100);
  if (memory_error > 0) text += fmt::format(", {:.1f} % of the memory", memory_error * 100);
  if (utilisation_error > 0) text += fmt::format(", {:.1f} % of the utilisation", utilisation_error * 100);
  return text + "\n";
}

}  // namespace infeed
