#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "loader/engine.h"
#include "ring/doorbell.h"
#include "worker/fault.h"

namespace infeed {
namespace {

// A worker that was stopped between its last write and its ring rings nobody: no sleep is longer than this.
constexpr std::chrono::milliseconds kLongestSleep{50};

std::string how_it_ended(const Death& death) {
  if (death.signal == 0) return fmt::format("exited with code {}", death.exit_code);
  const char* name = sigabbrev_np(death.signal);
  return fmt::format("was killed by SIG{}", name != nullptr ? name : "?");
}

}  // namespace

// Position in in_flight_ of a ready batch: the oldest, or, out of order, any.
std::optional<std::size_t> Loader::Engine::find_ready() const {
  const std::size_t candidates = settings_.in_order ? 1 : in_flight_.size();
  for (std::size_t i = 0; i < candidates; ++i) {
    if (!memory_->ring().ready(in_flight_[i].slot)) continue;
    // Batches of one shard stay in order: the position to resume from is a row of the shard.
    const int shard = in_flight_[i].work.shard;
    const auto older = in_flight_.begin() + static_cast<std::ptrdiff_t>(i);
    if (shard >= 0 &&
        std::any_of(in_flight_.begin(), older, [&](const InFlight& flight) { return flight.work.shard == shard; }))
      continue;
    return i;
  }
  return std::nullopt;
}

std::optional<Loader::Engine::Clock::time_point> Loader::Engine::deadline() const {
  if (options_.timeout_ms == 0) return std::nullopt;
  return Clock::now() + std::chrono::milliseconds(options_.timeout_ms);
}

std::size_t Loader::Engine::wait_for_ready() {
  if (const auto ready = find_ready()) return *ready;
  const Clock::time_point start = Clock::now();
  const std::optional<Clock::time_point> limit = deadline();
  std::optional<std::size_t> ready;
  {
    const std::lock_guard lock(stats_mutex_);
    recorder_.turns().wait_began(start);
  }
  try {
    for (;;) {
      while (!(ready = find_ready()) && pool_->help()) look_up(false);
      if (ready || spin_for_ready()) ready = find_ready();
      if (ready) break;
      block(limit);
      drain_cancelled();  // or block() would find it drained again, and never sleep nor see a death
    }
  } catch (...) {
    const std::lock_guard lock(stats_mutex_);
    recorder_.turns().waited(Clock::now() - start);
    throw;
  }
  const Clock::time_point end = Clock::now();
  trace_->waited(monotonic_ns(start), monotonic_ns(end));
  const std::lock_guard lock(stats_mutex_);
  recorder_.turns().waited(end - start);
  return *ready;
}

bool Loader::Engine::spin_for_ready() const {
  if (settings_.spin_us == 0) return false;
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(settings_.spin_us);
  do {
    for (int i = 0; i < 64; ++i) {
      if (find_ready()) return true;
      cpu_relax();
    }
  } while (Clock::now() < end);
  return false;
}

// Sleeps until a batch is full, a worker died, or the longest sleep is over; then sees to whatever it was.
void Loader::Engine::block(std::optional<Clock::time_point> deadline) {
  if (closing_) throw WorkerError("the loader was destroyed while next() waited.");
  const Clock::time_point now = Clock::now();
  if (deadline && now >= *deadline) throw_timeout();
  std::chrono::milliseconds sleep = kLongestSleep;
  if (deadline) sleep = std::min(sleep, std::chrono::ceil<std::chrono::milliseconds>(*deadline - now));

  polled_.assign(1, {.fd = ready_.fd(), .events = POLLIN, .revents = 0});
  for (const int fd : pool_->death_fds()) polled_.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  Ring& ring = memory_->ring();
  ring.begin_wait();
  const bool drained = std::any_of(cancelled_.begin(), cancelled_.end(), [&](int slot) { return ring.ready(slot); });
  int woken = 0;
  const bool sleeps = !drained && (in_flight_.empty() || !find_ready());
  if (sleeps) woken = ::poll(polled_.data(), polled_.size(), static_cast<int>(sleep.count()));
  ring.end_wait();
  if (polled_[0].revents != 0) ready_.drain();
  const bool died = std::any_of(polled_.begin() + 1, polled_.end(), [](const pollfd& fd) { return fd.revents != 0; });
  if (died) bury_the_dead();
  if (!sleeps || woken > 0) return;
  look_up(woken < 0);
  check_starts();
  check_attached(sleep);
  // A thread that found no free extent went to sleep; one may be free by now.
  const int open = ring.open_runs();
  if (open > 0) pool_->notify(open);
}

void Loader::Engine::look_up(bool interrupted) {
  if (!options_.on_wait) return;
  const Clock::time_point now = Clock::now();
  if (!interrupted && now - looked_up_ < kLongestSleep) return;
  looked_up_ = now;
  options_.on_wait();
}

// Every slot drains after a dropped epoch: room comes when a worker finishes the run in its hands.
void Loader::Engine::wait_for_a_drained_slot() {
  const std::optional<Clock::time_point> limit = deadline();
  const std::size_t before = cancelled_.size();
  while (cancelled_.size() == before && before > 0) {
    if (pool_->help())
      look_up(false);
    else
      block(limit);
    drain_cancelled();
  }
}

void Loader::Engine::bury_the_dead() {
  std::string message;
  std::exception_ptr failure;  // of a replacement, say: the other dead are buried all the same
  for (const Death& death : pool_->reap()) {
    try {
      const std::string lost = bury(death);
      if (message.empty()) message = lost;
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  const auto workers = static_cast<std::ptrdiff_t>(pool_->num_workers());
  const bool none_left = workers > 0 && std::count(lost_.begin(), lost_.begin() + workers, false) == 0;
  if (none_left && fatal_.empty()) fatal_ = message.empty() ? "no worker is left." : message;
  if (failure) std::rethrow_exception(failure);
  if (!message.empty()) throw WorkerError(message);
}

// Gives the dead worker's rows back and replaces it; what to throw if that is no longer possible, else empty.
std::string Loader::Engine::bury(const Death& death) {
  const std::string doing = bury_claims(death);
  std::string lost;
  if (death.worker_id < pool_->num_workers()) {  // else it was leaving anyway
    const std::string what =
        fmt::format("worker {} (pid {}) {} {}", death.worker_id, death.pid, how_it_ended(death), doing);
    lost_[static_cast<std::size_t>(death.worker_id)] = true;
    if (restarts_used_ < settings_.max_restarts)
      restart(death.worker_id, what);
    else
      lost = give_up(death, what);
  }
  memory_->ring().ring_workers(true);
  return lost;
}

// Frees what the dead worker's threads had claimed; says what they were doing.
std::string Loader::Engine::bury_claims(const Death& death) {
  Ring& ring = memory_->ring();
  const int first = death.worker_id * options_.threads_per_worker;
  std::string doing = "between samples";
  if (settings_.kind == WorkerKind::kSpawn && ring.stats(first).pid != death.pid)
    doing = "before it attached (is worker_executable, or INFEED_WORKER, infeed-worker of this build?)";
  for (int claimant = first; claimant < first + options_.threads_per_worker; ++claimant) {
    if (ring.start_error_code(claimant) != 0) check_starts();
    const ClaimantStats last = ring.stats(claimant);
    if (last.index >= 0) {
      const std::string name = describe_sample(last.index);
      doing = fmt::format("at sample {}{} of batch {}", last.index, name.empty() ? "" : fmt::format(" ({})", name),
                          last.batch);
    }
    ring.bury(claimant);
    ring.note_sample(claimant, 0, -1);  // or its successor would seem to be there
  }
  return doing;
}

void Loader::Engine::restart(int worker_id, const std::string& what) {
  ++restarts_used_;
  pool_->restart(worker_id);
  lost_[static_cast<std::size_t>(worker_id)] = false;
  log(LogLevel::kWarning, fmt::format("{}; restart {} of {}.", what, restarts_used_, settings_.max_restarts));
  {
    const std::lock_guard lock(stats_mutex_);
    recorder_.restarted(worker_id);
  }
  note_processes();
}

// Nobody comes in its place: what was assigned to it is anyone's.
std::string Loader::Engine::give_up(const Death& death, const std::string& what) {
  const int first = death.worker_id * options_.threads_per_worker;
  for (int claimant = first; claimant < first + options_.threads_per_worker; ++claimant)
    memory_->ring().reassign(claimant, kAnyone);
  const std::string hint = death.signal == SIGKILL
                               ? fmt::format(" Likely out of memory: lower num_workers ({}) or prefetch ({}).",
                                             pool_->num_workers(), depth_.load())
                               : "";
  return fmt::format("{}; restarts used: {} of {}.{}", what, restarts_used_, settings_.max_restarts, hint);
}

// A worker that could not start left the reason behind.
void Loader::Engine::check_starts() {
  const Ring& ring = memory_->ring();
  const int claimants = pool_->num_workers() * options_.threads_per_worker;
  for (int claimant = 0; claimant < std::max(claimants, 1); ++claimant) {
    if (ring.start_error_code(claimant) == 0) continue;
    fatal_ = fmt::format("worker {} could not start: {}", claimant / options_.threads_per_worker,
                         ring.start_failure(claimant));
    throw WorkerError(fatal_);
  }
}

// A program that is not infeed-worker may run for ever without taking part. Time that nobody slept through, as that of a
// machine that was suspended, does not count.
void Loader::Engine::check_attached(std::chrono::milliseconds slept) {
  if (settings_.kind != WorkerKind::kSpawn || options_.start_timeout_ms == 0) return;
  int worker = 0;
  while (worker < pool_->num_workers() &&
         (lost_[static_cast<std::size_t>(worker)] ||
          memory_->ring().stats(worker * options_.threads_per_worker).pid == pool_->pid(worker)))
    ++worker;
  unattached_ = worker < pool_->num_workers() ? unattached_ + slept : std::chrono::milliseconds(0);
  if (unattached_.count() < options_.start_timeout_ms) return;
  fatal_ = fmt::format(
      "worker {} (pid {}) has not attached within start_timeout_ms {}. Is worker_executable, or "
      "INFEED_WORKER, infeed-worker of this build?",
      worker, pool_->pid(worker), options_.start_timeout_ms);
  throw WorkerError(fatal_);
}

void Loader::Engine::throw_timeout() const {
  const std::uint64_t number = in_flight_.empty() ? 0 : in_flight_.front().work.number;
  const int claimants = settings_.max_workers * options_.threads_per_worker;
  std::string who;
  for (int claimant = 0; claimant < claimants; ++claimant) {
    const ClaimantStats now = memory_->ring().stats(claimant);
    if (now.pid == 0 || now.index < 0 || now.batch != number) continue;
    const std::string name = describe_sample(now.index);
    who += fmt::format("{}worker {} (pid {}) at sample {}{}", who.empty() ? "" : ", ",
                       claimant / options_.threads_per_worker, now.pid, now.index,
                       name.empty() ? "" : fmt::format(" ({})", name));
  }
  throw TimeoutError(fmt::format(
      "batch {} was not ready within timeout_ms {}; it waits for {}. Raise timeout_ms, or look at that sample.", number,
      options_.timeout_ms, who.empty() ? "a worker to begin it" : who));
}

}  // namespace infeed
