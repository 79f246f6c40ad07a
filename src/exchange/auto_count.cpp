#include "infeed/exchange/auto_count.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "loader/auto_workers.h"
#include "loader/cpu_times.h"
#include "loader/recorder.h"
#include "memory/limits.h"

namespace infeed {
namespace {

constexpr std::uint64_t kMega = 1'000'000;

AutoWorkers::Limits limits_of(const AutoCountOptions& options) {
  const std::uint64_t budget = options.memory_budget;
  if (const std::uint64_t taken = budget > 0 ? read_pss({::getpid()}) : 0; taken > budget)
    throw ConfigError(
        fmt::format("memory_budget is {} MB, this process has {} MB already.", budget / kMega, taken / kMega));
  return {.usable_cpus = options.usable_cpus > 0 ? options.usable_cpus : read_machine_limits().usable_cpus,
          .first = budget > 0 ? 1 : 0};
}

/// The largest worker tells what the next may grow to.
AutoWorkers::Memory memory_for_workers(const Exchange& exchange, std::uint64_t budget) {
  AutoWorkers::Memory memory;
  std::uint64_t all = budget > 0 ? read_pss({::getpid()}) : 0;
  for (const ExchangeStats::Worker& worker : exchange.stats().workers) {
    if (worker.retired || worker.pid == 0) continue;
    const std::uint64_t taken = read_pss({worker.pid});
    all += taken;
    memory.worker = std::max(memory.worker, taken);
  }
  if (budget > 0)
    memory.left = static_cast<std::int64_t>(budget) - static_cast<std::int64_t>(all);
  else if (const auto left = read_machine_limits().memory_left)
    memory.left = static_cast<std::int64_t>(*left);
  return memory;
}

}  // namespace

struct AutoCount::State {
  explicit State(const AutoCountOptions& options) : budget(options.memory_budget), policy(limits_of(options)) {}

  [[nodiscard]] AutoWorkers::WorkerTime time(const Exchange& exchange) const {
    AutoWorkers::WorkerTime sums = past;
    std::vector<std::int64_t> pids;
    for (const ExchangeStats::Worker& worker : exchange.stats().workers) {
      sums.busy_ns += worker.busy_ns;
      sums.idle_ns += worker.wait_ns;
      if (!worker.retired && worker.pid != 0) pids.push_back(worker.pid);
    }
    const CpuTimes cpu = WorkerCpu().read(pids);  // since they began: what counts is the difference
    sums.awake_ns = cpu.run_ns + cpu.wait_ns;
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
void AutoCount::turn_began() noexcept { state_->policy.called(AutoWorkers::Clock::now()); }

std::optional<std::string> AutoCount::turn_ended(bool with_batch, const Exchange& exchange) {
  if (!state_->policy.returned(with_batch, AutoWorkers::Clock::now())) return std::nullopt;
  const int before = workers();
  const auto change =
      state_->policy.look(state_->time(exchange), [&] { return memory_for_workers(exchange, state_->budget); });
  if (!change) return std::nullopt;
  log(LogLevel::kInfo, fmt::format("num_workers=auto: {} -> {}: {}.", before, change->workers, change->why));
  return change->why;
}

void AutoCount::refuse(int workers, const std::string& why) {
  state_->policy.refused(workers);
  log(LogLevel::kWarning, fmt::format("num_workers=auto stays at {}: {}", workers, why));
}

void AutoCount::closes(const Exchange& exchange) {
  state_->past = state_->time(exchange);
  state_->policy.interrupted();
}

}  // namespace infeed
