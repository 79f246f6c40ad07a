#pragma once
/// The state of one search: what was tried, what may still be.

#include <string>
#include <vector>

#include "infeed/tuner/tune.h"

namespace infeed {

class Search {
 public:
  Search(const Measure& measure, const TuneOptions& options);

  /// Spends the trials.
  void run();
  /// The smallest one within the tolerance of the fastest. Throws ConfigError where all were refused.
  [[nodiscard]] Trial chosen() const;
  [[nodiscard]] Trial fastest() const;
  [[nodiscard]] const std::vector<Trial>& trials() const noexcept { return trials_; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  void climb();
  void look_above();
  [[nodiscard]] bool depth_helps_as_much(int fewer, const Trial& trial);
  void refine();
  void deepen();
  void try_other_kinds();
  void confirm();

  /// Runs it unless it was run, does not fit, or the trials are spent. Null: no rate.
  const Trial* look(const WorkerSetting& setting);
  void record(const WorkerSetting& setting);
  [[nodiscard]] Trial merged(const WorkerSetting& setting) const;  ///< the mean where it ran more than once
  [[nodiscard]] std::vector<Trial> candidates() const;
  [[nodiscard]] WorkerSetting workers(int count) const;
  [[nodiscard]] double foreseen_bytes(const WorkerSetting& setting) const;
  [[nodiscard]] bool fits(const WorkerSetting& setting) const;
  [[nodiscard]] int first_count() const;
  [[nodiscard]] const Trial* slower_below(int count) const;
  [[nodiscard]] bool as_fast(const Trial& trial) const;
  [[nodiscard]] bool spent() const noexcept {
    return stopped_ || static_cast<int>(trials_.size()) >= options_.most_trials;
  }

  const Measure& measure_;
  TuneOptions options_;
  WorkerSetting form_;  ///< all but the number of workers
  std::vector<Trial> trials_;
  bool depth_was_asked_ = false;
  bool stopped_ = false;
  std::vector<Trial> merged_;  ///< one a setting
};

}  // namespace infeed
