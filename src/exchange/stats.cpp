#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "exchange/state.h"
#include "infeed/exchange/exchange.h"
#include "loader/cpu_times.h"
#include "memory/fork_watch.h"
#include "memory/limits.h"

// What the exchange counts, and the same as a loader's figures: one verdict for both.

namespace infeed {
namespace {

double seconds_in_hand(std::uint64_t claimed_ns) {
  const std::uint64_t now = monotonic_ns();
  return claimed_ns == 0 || claimed_ns > now ? 0 : static_cast<double>(now - claimed_ns) * 1e-9;
}

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

}  // namespace

void Exchange::turn_began() noexcept {
  if (process_generation() != state_->generation) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->trainer == 0) {
    state_->trainer = ::gettid();
    state_->trainer_queued_ns = cpu_times_of_thread(state_->trainer).wait_ns;
  }
  state_->turns.called();
  if (state_->trace) state_->trace->called();
}

void Exchange::turn_drew(std::uint64_t ns) noexcept {
  if (process_generation() != state_->generation) return;
  const std::lock_guard lock(state_->mutex);
  state_->turns.sampled(std::chrono::nanoseconds(ns));
  const std::uint64_t now = monotonic_ns();
  if (state_->trace) state_->trace->drew(now - ns, now);
}

void Exchange::turn_ended(std::int64_t samples) noexcept {
  if (process_generation() != state_->generation) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->trace) state_->trace->returned();
  state_->turns.returned(samples >= 0);
  if (samples < 0) return;
  ++state_->batches;
  state_->samples += static_cast<std::uint64_t>(samples);
}

ExchangeStats Exchange::stats() const {
  State& state = ours();
  const std::lock_guard lock(state.mutex);
  const ExchangeLine& line = state.open();
  ExchangeStats stats{.extents = line.arena().num_extents(),
                      .extents_free = line.ring().free_extents(),
                      .held = line.memory()->held(),
                      .held_bytes = state.held_bytes->load(std::memory_order_relaxed),
                      .committed_bytes = line.arena().committed_bytes(),
                      .waits = state.waits,
                      .wait_ns = state.wait_ns};
  for (int worker = 0; worker < state.options.num_workers; ++worker) {
    const ClaimantStats now = line.ring().stats(worker);
    stats.workers.push_back({.pid = now.pid,
                             .tasks = now.runs,
                             .busy_ns = now.busy_ns,
                             .wait_ns = now.wait_ns,
                             .collate_ns = now.collate_ns,
                             .in_hand_s = seconds_in_hand(now.claimed_ns)});
  }
  return stats;
}

LoaderStats Exchange::loader_stats(int prefetch_factor) const {
  const ExchangeStats now = stats();
  LoaderStats stats;
  std::uint64_t tasks = 0, busy_ns = 0, wait_ns = 0, collate_ns = 0;
  std::vector<std::int64_t> pids;
  for (const ExchangeStats::Worker& worker : now.workers) {
    const char process = process_state(worker.pid);
    stats.workers.push_back({.id = static_cast<int>(stats.workers.size()),
                             .pid = worker.pid,
                             .samples = worker.tasks,
                             .busy_s = seconds(worker.busy_ns),
                             .wait_s = seconds(worker.wait_ns),
                             .in_hand_s = worker.in_hand_s,
                             .stopped = process == 'T' || process == 't'});
    pids.push_back(worker.pid);
    tasks += worker.tasks;
    busy_ns += worker.busy_ns;
    wait_ns += worker.wait_ns;
    collate_ns += worker.collate_ns;
  }
  const CpuTimes cpu = WorkerCpu().read(pids);
  if (cpu.known && busy_ns > 0) {
    stats.on_cpu_share = std::min(1.0, static_cast<double>(cpu.run_ns) / static_cast<double>(busy_ns));
    stats.cpu_queue_share = std::min(1.0, static_cast<double>(cpu.wait_ns) / static_cast<double>(busy_ns));
  }
  State& state = ours();
  {
    const std::lock_guard lock(state.mutex);
    state.turns.fill(stats);
    stats.batches = state.batches;
    stats.samples = state.samples;
    const CpuTimes trainer = cpu_times_of_thread(state.trainer);
    if (trainer.known && stats.elapsed_s > 0)
      stats.trainer_cpu_queue_share = std::min(
          1.0, seconds(trainer.wait_ns - std::min(trainer.wait_ns, state.trainer_queued_ns)) / stats.elapsed_s);
  }
  // A task is a batch: its samples are as many as batches have.
  const double rows =
      static_cast<double>(stats.samples) / static_cast<double>(std::max<std::uint64_t>(1, stats.batches));
  for (WorkerStats& worker : stats.workers)
    worker.samples = static_cast<std::uint64_t>(static_cast<double>(worker.samples) * std::max(1.0, rows));
  const double made = std::max(1.0, static_cast<double>(tasks) * std::max(1.0, rows));
  stats.collate_us = static_cast<double>(collate_ns) * 1e-3 / made;
  stats.other_us = static_cast<double>(busy_ns - std::min(busy_ns, collate_ns)) * 1e-3 / made;
  stats.blocked_share =
      busy_ns + wait_ns > 0 ? static_cast<double>(wait_ns) / static_cast<double>(busy_ns + wait_ns) : 0;
  stats.samples_per_s = stats.elapsed_s > 0 ? static_cast<double>(stats.samples) / stats.elapsed_s : 0;
  stats.num_workers = state.options.num_workers;
  stats.prefetch = prefetch_factor * state.options.num_workers;
  stats.prefetch_factor = prefetch_factor;
  stats.usable_cpus = read_machine_limits().usable_cpus;
  stats.memory_limit = state.options.memory_limit;
  stats.arena_bytes = now.committed_bytes;
  stats.batches_held = now.held;
  return stats;
}

}  // namespace infeed
