#include <unistd.h>

#include <algorithm>

#include "base/clock.h"
#include "exchange/state.h"
#include "infeed/exchange/exchange.h"
#include "memory/fork_watch.h"
#include "memory/limits.h"

// What the exchange counts, and the same as a loader's figures: one verdict for both.

namespace infeed {
namespace {

double seconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }
double share(std::uint64_t part, std::uint64_t whole) {
  return whole > 0 ? std::min(1.0, static_cast<double>(part) / static_cast<double>(whole)) : 0;
}

/// Of all workers.
struct Sums {
  std::uint64_t tasks = 0, busy_ns = 0, wait_ns = 0, collate_ns = 0;
  std::vector<std::int64_t> pids;
  double rows = 1;  ///< of a task, which is a batch: as many as batches have on average
};

Sums add_workers(const ExchangeStats& now, LoaderStats& stats) {
  Sums sums;
  if (stats.batches > 0)
    sums.rows = std::max(1.0, static_cast<double>(stats.samples) / static_cast<double>(stats.batches));
  int next_id = 0;
  for (const ExchangeStats::Worker& worker : now.workers) {
    sums.tasks += worker.tasks;
    sums.busy_ns += worker.busy_ns;
    sums.wait_ns += worker.wait_ns;
    sums.collate_ns += worker.collate_ns;
    const int id = next_id++;
    if (worker.retired) continue;
    stats.workers.push_back({.id = id,
                             .pid = worker.pid,
                             .samples = static_cast<std::uint64_t>(static_cast<double>(worker.tasks) * sums.rows),
                             .busy_s = seconds(worker.busy_ns),
                             .wait_s = seconds(worker.wait_ns),
                             .in_hand_s = worker.in_hand_s,
                             .stopped = is_stopped(worker.pid)});
    sums.pids.push_back(worker.pid);
  }
  stats.num_workers = static_cast<int>(stats.workers.size());
  return sums;
}

void add_times(const Sums& sums, LoaderStats& stats) {
  const double samples = std::max(1.0, static_cast<double>(sums.tasks) * sums.rows);
  stats.collate_us = static_cast<double>(sums.collate_ns) * 1e-3 / samples;
  stats.other_us = static_cast<double>(sums.busy_ns - std::min(sums.busy_ns, sums.collate_ns)) * 1e-3 / samples;
  stats.blocked_share = share(sums.wait_ns, sums.busy_ns + sums.wait_ns);
}

}  // namespace

void Exchange::turn_began() noexcept {
  if (process_generation() != state_->generation) return;
  const std::lock_guard lock(state_->mutex);
  if (state_->trainer == 0) {
    state_->trainer = ::gettid();
    state_->trainer_base = cpu_times_of_thread(state_->trainer);
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
                             .in_hand_s = seconds_in_hand(now.claimed_ns, monotonic_ns()),
                             .retired = line.ring().retired(worker)});
  }
  return stats;
}

void Exchange::State::fill_turns(LoaderStats& stats) const {
  turns.fill(stats);
  stats.batches = batches;
  stats.samples = samples;
  if (stats.elapsed_s > 0) stats.samples_per_s = static_cast<double>(samples) / stats.elapsed_s;
}

LoaderStats Exchange::loader_stats(int prefetch_factor) const {
  const ExchangeStats now = stats();
  State& state = ours();
  LoaderStats stats;
  CpuTimes trainer, trainer_base;
  {
    const std::lock_guard lock(state.mutex);
    state.fill_turns(stats);
    trainer = cpu_times_of_thread(state.trainer);
    trainer_base = state.trainer_base;
  }
  const Sums sums = add_workers(now, stats);
  fill_cpu_shares(stats, WorkerCpu().read(sums.pids), sums.busy_ns, trainer, trainer_base);
  add_times(sums, stats);
  stats.prefetch = prefetch_factor * stats.num_workers;
  stats.prefetch_factor = prefetch_factor;
  stats.usable_cpus = read_usable_cpus();
  stats.memory_limit = state.options.memory_limit;
  stats.arena_bytes = now.committed_bytes;
  stats.batches_held = now.held;
  return stats;
}

}  // namespace infeed
