#pragma once
/// The smallest setting that is as fast as any, in at most 12 short trials.
///
///   infeed::Tuned tuned = infeed::tune([&](const infeed::WorkerSetting& setting) { return run_briefly(setting); });
///   std::puts(tuned.str().c_str());

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/tuner/model.h"

namespace infeed {

/// What a short run of a setting gave. What was not measured is 0.
struct Trial {
  WorkerSetting setting;
  double samples_per_s = 0;
  int runs = 1;              ///< that it is of
  double spread = 0;         ///< of these: (largest - smallest) / median; 0 where it is one
  double memory_bytes = 0;   ///< of all processes
  double utilisation = 0;    ///< share of the time that the trainer's step ran
  double others_share = 0;   ///< of the usable processors: what other programs took meanwhile
  std::string refused = {};  ///< why it could not run; it is then no candidate
  bool stopped = false;      ///< early: no figures, and the search ends
};

/// Runs a setting and measures it. A MemoryError or ConfigError makes the trial a refused one; others end the search.
using Measure = std::function<Trial(const WorkerSetting&)>;

struct TuneOptions {
  /// Kinds to choose from. The first is searched, the others are tried where it ends, a trial each. Default threads.
  std::vector<WorkerKind> kinds = {WorkerKind::kThread};
  int threads = 1;  ///< of each worker
  bool pinned = true;
  /// Most workers. Default 64.
  int max_workers = 64;
  /// Bytes that all processes may take. Default 0: no limit. A setting whose memory is foreseen to exceed it is not run.
  std::uint64_t memory_budget = 0;
  /// Of a batch; 0: unknown. Foresees the memory of a deeper queue.
  std::uint64_t batch_bytes = 0;
  /// What may be given away for a smaller setting, of the best rate. Default 2 %.
  double tolerance = 0.02;
  /// Default 12.
  int most_trials = 12;
  /// Affinity and cgroup quota, and the machine's cores: for the rules of thumb. Default: as read here.
  double usable_cpus = 0;
  int physical_cores = 0;
};

/// A rule that people go by, and what it would give here.
struct RuleOfThumb {
  std::string name;
  WorkerSetting setting;
  double samples_per_s = 0;
  bool measured = false;  ///< else the model says so; 0 where it cannot
};

struct Tuned {
  Trial chosen;
  Trial fastest;
  std::vector<Trial> trials;  ///< in their order
  std::vector<RuleOfThumb> rules;
  std::string why;
  bool interrupted = false;

  /// Choice, reason, trials and rules, for people.
  [[nodiscard]] INFEED_API std::string str() const;
  /// A line for each trial, with a head.
  [[nodiscard]] INFEED_API std::string csv() const;
  [[nodiscard]] INFEED_API State to_state() const;
  /// Rate and memory over workers: a picture that needs nothing else.
  [[nodiscard]] INFEED_API std::string svg() const;
};

/// Doubles the workers while that helps, looks between for the fewest that keep the rate, then for a deeper queue and
/// other kinds. The fastest and the choice then run again, by turns, where their spread is unknown or large and trials are
/// left. A trial that was stopped ends it: the choice is then among those before. Throws ConfigError where no setting
/// could run, and Error where the first was stopped.
[[nodiscard]] INFEED_API Tuned tune(const Measure& measure, const TuneOptions& options = {});

/// "0.75 x physical cores" and "min(4, cores - 2)", each at least 0: on small machines the second asks for none.
[[nodiscard]] INFEED_API std::vector<RuleOfThumb> rules_of_thumb(WorkerKind kind, int physical_cores,
                                                                 double usable_cpus);

}  // namespace infeed
