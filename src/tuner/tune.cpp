#include "infeed/tuner/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/tuner/fit.h"
#include "memory/limits.h"
#include "tuner/cores.h"
#include "tuner/search.h"

namespace infeed {
namespace {

void check(const TuneOptions& options) {
  if (options.kinds.empty()) throw ConfigError("tune() needs a kind of worker; give kinds.");
  for (const WorkerKind kind : options.kinds) {
    if (kind == WorkerKind::kInline || kind == WorkerKind::kAuto)
      throw ConfigError(
          fmt::format("{} is no kind to search; inline is always tried. Give thread, fork or spawn.", to_string(kind)));
  }
  if (options.most_trials < 3)
    throw ConfigError(fmt::format("most_trials is {}; a search needs 3 at least.", options.most_trials));
  if (options.max_workers < 1 || options.max_workers > 64)
    throw ConfigError(fmt::format("max_workers is {}; between 1 and 64 are possible.", options.max_workers));
  if (!(options.tolerance >= 0 && options.tolerance < 1) || options.threads < 1)
    throw ConfigError(fmt::format("tolerance is {} and threads {}; between 0 and 1, and 1 or more, are possible.",
                                  options.tolerance, options.threads));
}

TuneOptions completed(TuneOptions options) {
  if (options.usable_cpus <= 0) options.usable_cpus = read_usable_cpus();
  if (options.physical_cores <= 0) options.physical_cores = physical_cores();
  if (options.physical_cores <= 0) options.physical_cores = std::max(1, static_cast<int>(options.usable_cpus));
  return options;
}

std::vector<MeasuredRow> rows_of(const std::vector<Trial>& trials) {
  std::vector<MeasuredRow> rows;
  for (const Trial& trial : trials) {
    if (trial.refused.empty())
      rows.push_back({trial.setting, trial.samples_per_s, trial.memory_bytes, trial.utilisation});
  }
  return rows;
}

void rate_rules(Tuned& tuned, const TuneOptions& options) {
  const std::vector<MeasuredRow> rows = rows_of(tuned.trials);
  for (RuleOfThumb& rule : tuned.rules) {
    const auto ran = std::find_if(rows.begin(), rows.end(), [&](const MeasuredRow& row) {
      return row.setting.workers == rule.setting.workers && row.setting.prefetch == 0;
    });
    rule.measured = ran != rows.end();
    if (rule.measured) {
      rule.samples_per_s = ran->samples_per_s;
    } else if (rows.size() >= 2) {
      const PipelineCosts costs = fit_costs(rows, {.usable_cpus = options.usable_cpus}).costs;
      rule.samples_per_s = predict(costs, rule.setting).samples_per_s;
    }
  }
}

std::string reason(const Tuned& tuned, const TuneOptions& options) {
  const Trial &chosen = tuned.chosen, &fastest = tuned.fastest;
  std::string why = fmt::format("{:.0f} samples/s", chosen.samples_per_s);
  if (chosen.setting == fastest.setting) {
    why += ", the fastest of " + fmt::format("{} trials", tuned.trials.size());
  } else {
    why += fmt::format(", within {:.0f} % of the fastest ({}: {:.0f}) with less", options.tolerance * 100,
                       fastest.setting.str(), fastest.samples_per_s);
  }
  if (chosen.runs > 1) why += fmt::format("; its {} runs are within {:.1f} %", chosen.runs, chosen.spread * 100);
  const auto over =
      std::find_if(tuned.trials.begin(), tuned.trials.end(), [](const Trial& t) { return !t.refused.empty(); });
  if (over != tuned.trials.end()) why += fmt::format("; {} was refused: {}", over->setting.str(), over->refused);
  if (chosen.utilisation >= 0.9) {
    why += fmt::format("; the trainer's step runs {:.0f} % of the time, more workers cannot help",
                       chosen.utilisation * 100);
  }
  const auto more = std::find_if(tuned.trials.begin(), tuned.trials.end(), [&](const Trial& t) {
    return t.refused.empty() && t.setting.claimants() > chosen.setting.claimants();
  });
  if (more != tuned.trials.end())
    why += fmt::format("; {} gave {:.0f}, with {:.1f} usable CPUs", more->setting.str(), more->samples_per_s,
                       options.usable_cpus);
  return why + ".";
}

}  // namespace

std::vector<RuleOfThumb> rules_of_thumb(WorkerKind kind, int physical_cores, double usable_cpus) {
  const auto setting = [kind](int count) {
    const int workers = std::clamp(count, 0, 64);
    return WorkerSetting{.kind = workers == 0 ? WorkerKind::kInline : kind, .workers = workers};
  };
  return {{"0.75 x physical cores", setting(static_cast<int>(0.75 * physical_cores))},
          {"min(4, cores - 2)", setting(std::min(4, static_cast<int>(usable_cpus) - 2))}};
}

Tuned tune(const Measure& measure, const TuneOptions& given) {
  check(given);
  const TuneOptions options = completed(given);
  Search search(measure, options);
  search.run();
  Tuned tuned{.chosen = search.chosen(),
              .fastest = search.fastest(),
              .trials = search.trials(),
              .rules = rules_of_thumb(options.kinds.front(), options.physical_cores, options.usable_cpus)};
  rate_rules(tuned, options);
  tuned.why = reason(tuned, options);
  tuned.interrupted = search.stopped();
  return tuned;
}

}  // namespace infeed
