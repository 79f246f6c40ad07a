#pragma once
/// num_workers = auto for a consumer of exchanges: how many workers there should be, and how deep a queue. See
/// docs/tuning.md.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "infeed/base/export.h"
#include "infeed/exchange/exchange.h"

namespace infeed {

struct AutoCountOptions {
  /// Bytes that the consumer and its workers may have in all, shared pages once (PSS). Begins with one worker then.
  /// Default 0: what the machine and its cgroups leave.
  std::uint64_t memory_budget = 0;
  double usable_cpus = 0;  ///< 0: affinity and cgroup quota, as read here
  int deepest = 1;         ///< times the usual number of tasks ahead that there may be
};

/// Watches the turns of a trainer, through one exchange after another, and says when to change the number of workers
/// or the depth of the queue: for the shortest time of step and wait together. Each change is a line in the log, at level info.
///
/// Threads: one at a time.
class INFEED_API AutoCount {
 public:
  /// Throws ConfigError where this process alone has more than the budget.
  explicit AutoCount(const AutoCountOptions& options = {});
  AutoCount(const AutoCount&) = delete;
  AutoCount& operator=(const AutoCount&) = delete;
  ~AutoCount();

  [[nodiscard]] int workers() const noexcept;  ///< that there should be; at first half of the usable CPUs, 1 to 4
  [[nodiscard]] int most() const noexcept;     ///< that there will ever be
  /// How many times as many tasks as is usual for so many workers should be ahead.
  [[nodiscard]] int times_deeper() const noexcept;

  void turn_began() noexcept;
  /// A turn ended. Where workers() or times_deeper() changed by it, the reason.
  [[nodiscard]] std::optional<std::string> turn_ended(bool with_batch, const Exchange& exchange);
  /// No more than so many could be had.
  void refuse(int workers, const std::string& why);
  /// The exchange goes, another will follow.
  void closes(const Exchange& exchange);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace infeed
