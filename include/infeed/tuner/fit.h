#pragma once
/// The model's costs from measured rows.
///
///   infeed::Fit fit = infeed::fit_costs(rows);
///   std::puts(fit.costs.str().c_str());
///   infeed::predict(fit.costs, {.workers = 12}).samples_per_s;

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/tuner/model.h"

namespace infeed {

/// One setting and what it gave. What was not measured is 0.
struct MeasuredRow {
  WorkerSetting setting;
  double samples_per_s = 0;
  double memory_bytes = 0;
  double utilisation = 0;
};

/// Costs that were measured by themselves and are not to be fitted.
struct KnownCosts {
  std::optional<double> sample_s = {};
  std::optional<double> cpu_share = {};
  std::optional<double> step_s = {};
  std::optional<double> trainer_cpus = {};
  std::optional<double> hand_over_s = {};
  std::optional<double> copy_s = {};
  std::optional<double> usable_cpus = {};
  std::optional<double> batch_bytes = {};
};

struct Fit {
  PipelineCosts costs;
  /// Largest of |predicted / measured - 1| over the rows; 0 where no row has that figure.
  double rate_error = 0, memory_error = 0, utilisation_error = 0;

  /// The costs and the errors, for people.
  [[nodiscard]] INFEED_API std::string str() const;
};

/// Least squares on the logarithms of the rates (and of the utilisations, where given), with every cost at 0 or above.
/// Where rows cannot tell costs apart, the smaller waits win. Copies count only where given, or where pinned and
/// pageable rows are both there. Where prefetch follows the workers, a batch's memory counts as theirs.
/// Determinism: the same rows give the same costs. Takes milliseconds.
/// Throws ConfigError on fewer than 2 rows, or on a rate that is not above 0.
[[nodiscard]] INFEED_API Fit fit_costs(const std::vector<MeasuredRow>& rows, const KnownCosts& known = {});

/// The errors that `costs` make on `rows`.
[[nodiscard]] INFEED_API Fit judge_costs(const PipelineCosts& costs, const std::vector<MeasuredRow>& rows);

}  // namespace infeed
