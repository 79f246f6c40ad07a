#pragma once
/// A training that finds its number of workers by itself.

#include <memory>
#include <optional>
#include <string>

#include "infeed/device/device.h"
#include "infeed/loader/loader.h"
#include "infeed/loader/stager.h"
#include "pipelines.h"

namespace bench {

class AutoRun {
 public:
  /// `pipeline` must outlive it. `memory_budget`: of all processes, bytes.
  AutoRun(const Pipeline& pipeline, std::uint64_t memory_budget);
  ~AutoRun();
  AutoRun(const AutoRun&) = delete;
  AutoRun& operator=(const AutoRun&) = delete;

  /// Trains; the changes made meanwhile are those of its convergence.
  void converge(double seconds);
  /// Samples a second of so long a stretch of the training, behind a few steps that do not count.
  [[nodiscard]] double rate(double seconds);

  /// "2 workers, prefetch 4".
  [[nodiscard]] std::string setting() const;
  [[nodiscard]] int changes_of_convergence() const noexcept { return changes_of_convergence_; }
  /// Largest memory of all processes seen: behind each change, and at the end of each stretch.
  [[nodiscard]] double most_bytes() const noexcept { return most_bytes_; }

 private:
  std::int64_t train(double seconds);  ///< samples
  std::int64_t turn();
  std::optional<infeed::Batch> next();
  void look_at_memory();

  const Pipeline& pipeline_;
  infeed::Loader loader_;
  std::shared_ptr<infeed::Device> device_;
  std::optional<infeed::Stager> stager_;
  int changes_ = 0, changes_seen_ = 0, changes_of_convergence_ = 0;
  double most_bytes_ = 0;
};

}  // namespace bench
