#include "infeed/exchange/auto_count.h"

#include <fmt/format.h>

#include <vector>

#include "infeed/base/log.h"
#include "loader/auto_workers.h"
#include "loader/cpu_times.h"
#include "loader/worker_memory.h"
#include "memory/limits.h"

namespace infeed {
namespace {

AutoWorkers::Limits limits_of(const AutoCountOptions& options) {
  const std::uint64_t budget = options.memory_budget;
  check_memory_budget(budget);
  return {.usable_cpus = options.usable_cpus > 0 ? options.usable_cpus : read_usable_cpus(),
          .first = budget > 0 ? 1 : 0,
          .deepest = options.deepest};
}

/// Of the workers that are there.
std::vector<std::int64_t> pids_of(const ExchangeStats& stats) {
  std::vector<std::int64_t> pids;
  for (const ExchangeStats::Worker& worker : stats.workers) {
    if (!worker.retired && worker.pid != 0) pids.push_back(worker.pid);
  }
  return pids;
}

}  // namespace

struct AutoCount::State {
  explicit State(const AutoCountOptions& options) : budget(options.memory_budget), policy(limits_of(options)) {}

  [[nodiscard]] AutoWorkers::WorkerTime time(const ExchangeStats& stats) const {
    AutoWorkers::WorkerTime sums = past;
    for (const ExchangeStats::Worker& worker : stats.workers) {
      sums.busy_ns += worker.busy_ns;
      sums.idle_ns += worker.wait_ns;
    }
    return sums;
  }

  const std::uint64_t budget;
  AutoWorkers policy;
  AutoWorkers::WorkerTime past;  ///< of exchanges that are gone
};

AutoCount::AutoCount(const AutoCountOptions& options) : state_(std::make_unique<State>(options)) {}
AutoCount::~AutoCount() = default;

int AutoCount::workers() const noexcept { return state_->policy.workers(); }
int AutoCount::most() const noexcept { return state_->policy.most(); }
int AutoCount::times_deeper() const noexcept { return state_->policy.times_deeper(); }
void AutoCount::turn_began() noexcept { state_->policy.called(AutoWorkers::Clock::now()); }

std::optional<std::string> AutoCount::turn_ended(bool with_batch, const Exchange& exchange) {
  if (!state_->policy.returned(with_batch, AutoWorkers::Clock::now())) return std::nullopt;
  const int before = workers(), depth_before = times_deeper();
  const ExchangeStats stats = exchange.stats();
  const std::vector<std::int64_t> pids = pids_of(stats);
  AutoWorkers::WorkerTime time = state_->time(stats);
  const CpuTimes cpu = WorkerCpu().read(pids);  // since they began: what counts is the difference
  time.awake_ns = cpu.run_ns + cpu.wait_ns;
  const auto change = state_->policy.look(time, [&] {
    AutoWorkers::Memory memory = memory_beside(pids, state_->budget);
    memory.queue = stats.committed_bytes;
    return memory;
  });
  if (!change) return std::nullopt;
  const std::string what = change->workers != before
                               ? fmt::format("{} -> {}", before, change->workers)
                               : fmt::format("the queue {} -> {} times as deep", depth_before, change->times_deeper);
  log(LogLevel::kInfo, fmt::format("num_workers=auto: {}: {}.", what, change->why));
  return change->why;
}

void AutoCount::refuse(int workers, const std::string& why) {
  state_->policy.refused(workers);
  log(LogLevel::kWarning, fmt::format("num_workers=auto stays at {}: {}", workers, why));
}

void AutoCount::closes(const Exchange& exchange) {
  state_->past = state_->time(exchange.stats());
  state_->policy.interrupted();
}

}  // namespace infeed
