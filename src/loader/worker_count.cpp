#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "loader/engine.h"
#include "loader/worker_memory.h"

// How many workers there are: as the options say, as the user says later, or as the trainer needs.

namespace infeed {
namespace {

constexpr int kTimesDeeper = 8;    // than usual, at most,
constexpr int kDeepestQueue = 32;  // batches: a claim looks at every slot

}  // namespace

// Where the count is to follow the need: what to begin with.
void Loader::Engine::begin_with_auto(const MachineLimits& limits) {
  const std::uint64_t budget = options_.memory_budget;
  if (options_.num_workers != kAutoWorkers) {
    if (budget > 0)
      throw ConfigError("memory_budget is for num_workers auto; memory_limit bounds the batches of any loader.");
    return;
  }
  check_memory_budget(budget);
  if (options_.worker_kind == WorkerKind::kInline)
    throw ConfigError("worker_kind inline has no workers, num_workers is auto. Choose thread, fork or spawn.");
  if (stream_ != nullptr && options_.stream_shards == 0)
    throw ConfigError(
        "num_workers is auto, and the shards of a stream fix the order of its samples. Give stream_shards: as many as "
        "workers may be of use.");
  const int most = AutoWorkers::most_for(limits.usable_cpus, options_.threads_per_worker);
  auto_workers_.emplace(
      AutoWorkers::Limits{.usable_cpus = limits.usable_cpus,
                          .threads = std::max(1, options_.threads_per_worker),
                          .most = stream_ != nullptr ? std::min(most, std::max(1, options_.stream_shards)) : most,
                          .first = budget > 0 ? 1 : 0,
                          .deepest = options_.prefetch > 0 ? 1 : kTimesDeeper});
  options_.num_workers = auto_workers_->workers();
}

// Slots cannot be added later.
void Loader::Engine::make_room_for_auto() {
  if (!auto_workers_) return;
  const int most = auto_workers_->most();
  const int depth = options_.prefetch > 0 ? options_.prefetch : std::max(default_depth(settings_, most), kDeepestQueue);
  settings_.num_slots = std::max(settings_.num_slots, depth + most);
  if (options_.max_restarts < 0) settings_.max_restarts = most;
}

void Loader::Engine::set_num_workers(int num_workers) {
  const auto lock = lock_ours();
  check_usable();
  if (settings_.kind == WorkerKind::kInline)
    throw ConfigError("an inline loader has no workers to change. Make it with num_workers of 1 or more.");
  if (num_workers < 1 || num_workers > settings_.max_workers)
    throw ConfigError(
        fmt::format("num_workers is {}; between 1 and {} are possible here.", num_workers, settings_.max_workers));
  auto_workers_.reset();
  resize(num_workers);
}

void Loader::Engine::resize(int num_workers) {
  const int before = pool_->num_workers();
  pool_->resize(num_workers);
  for (int worker = num_workers; worker < before; ++worker) {
    lost_[static_cast<std::size_t>(worker)] = false;
    for (int thread = 0; thread < options_.threads_per_worker; ++thread)
      memory_->ring().reassign(worker * options_.threads_per_worker + thread, kAnyone);
  }
  memory_->ring().ring_workers(true);
  pool_->notify(memory_->ring().open_runs());
  note_processes();
}

// Behind the batch, before the trainer has it.
void Loader::Engine::adapt(bool with_batch) {
  if (!auto_workers_->returned(with_batch, Clock::now())) return;
  AutoWorkers::WorkerTime time;
  for (const ClaimantStats& claimant : counters()) {
    time.busy_ns += claimant.busy_ns;
    time.idle_ns += claimant.wait_ns;
  }
  const CpuTimes cpu = WorkerCpu{}.read(worker_pids_);  // since they began: what counts is the difference
  time.awake_ns = cpu.run_ns + cpu.wait_ns;
  const int before = pool_->num_workers();
  const auto next = auto_workers_->look(time, [this] { return memory_for_workers(); });
  if (!next) return;
  try {
    if (next->workers != before) resize(next->workers);
  } catch (const Error& error) {
    auto_workers_->refused(pool_->num_workers());  // some of them may have come
    note_processes();
    log(LogLevel::kWarning, fmt::format("num_workers=auto stays at {}: {}", pool_->num_workers(), error.what()));
    return;
  }
  const int depth_before = depth_;
  if (options_.prefetch == 0) {
    const int usual = default_depth(settings_, next->workers);
    depth_ = std::max(usual, std::min(next->times_deeper * usual, kDeepestQueue));
  }
  const std::string change = next->workers != before ? fmt::format("{} -> {}", before, next->workers)
                                                     : fmt::format("prefetch {} -> {}", depth_before, depth_.load());
  log(LogLevel::kInfo, fmt::format("num_workers=auto: {}: {}.", change, next->why));
}

AutoWorkers::Memory Loader::Engine::memory_for_workers() const {
  AutoWorkers::Memory memory = memory_beside(processes_, options_.memory_budget);
  if (settings_.whole && options_.prefetch == 0) memory.worker += batch_estimate();  // the depth follows the workers
  memory.queue = batch_estimate() * static_cast<std::uint64_t>(depth_);
  return memory;
}

int Loader::Engine::num_workers() const {
  const auto lock = lock_ours();
  return pool_->num_workers();
}

void Loader::Engine::note_processes() {
  const std::lock_guard lock(stats_mutex_);
  processes_ = {getpid()};
  for (const pid_t pid : pool_->pids()) processes_.push_back(pid);
  worker_pids_.clear();
  for (int worker = 0; worker < std::max(1, pool_->num_workers()); ++worker) {
    const pid_t pid = pool_->num_workers() > 0 ? pool_->pid(worker) : 0;
    worker_pids_.push_back(pid > 0 ? pid : getpid());
  }
}

}  // namespace infeed
