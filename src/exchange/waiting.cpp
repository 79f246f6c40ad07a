#include <algorithm>
#include <chrono>

#include "base/clock.h"
#include "exchange/state.h"
#include "memory/fork_watch.h"
#include "ring/doorbell.h"

// Looks, spins, sleeps, looks. Ready or not is looked at between begin_wait() and the sleep: see docs/ring.md, "Two
// that must not miss each other".

namespace infeed {
namespace {

using Clock = std::chrono::steady_clock;

std::uint64_t ns_since(Clock::time_point start) {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

std::vector<pollfd> to_poll(const ExchangeLine& line, std::span<const int> death_fds) {
  std::vector<pollfd> fds{{.fd = line.ready().fd(), .events = POLLIN, .revents = 0}};
  for (const int fd : death_fds) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  return fds;
}

}  // namespace

std::optional<std::size_t> Exchange::State::find_ready(std::span<const std::uint64_t> numbers) const {
  const Ring& ring = open().ring();
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (ring.ready(flight(numbers[i]).slot)) return i;
  return std::nullopt;
}

std::optional<std::size_t> Exchange::State::spin_for_ready(std::span<const std::uint64_t> numbers) const {
  const auto end = Clock::now() + std::chrono::microseconds(line->geometry().spin_us);
  while (Clock::now() < end) {
    for (int i = 0; i < 64; ++i) {
      if (const auto found = find_ready(numbers)) return found;
      cpu_relax();
    }
  }
  return std::nullopt;
}

ExchangeEvent Exchange::wait(std::span<const std::uint64_t> numbers, std::span<const int> death_fds, int timeout_ms) {
  using Kind = ExchangeEvent::Kind;
  State& state = ours();
  std::unique_lock lock(state.mutex);
  const auto done = [&](std::size_t index) -> ExchangeEvent {
    state.waiting = false;
    return {Kind::kReady, index};
  };
  if (const auto found = state.find_ready(numbers)) return done(*found);
  if (!std::exchange(state.waiting, true)) ++state.waits;
  const auto start = Clock::now();
  state.turns.wait_began(start);
  const std::shared_ptr<ExchangeLine> line = state.line;  // close() by another thread leaves us the descriptor
  auto found = timeout_ms == 0 ? std::nullopt : state.spin_for_ready(numbers);
  std::vector<pollfd> fds = to_poll(*line, death_fds);
  line->ring().begin_wait();
  if (!found && !(found = state.find_ready(numbers))) {
    const int sleep_ms = timeout_ms < 0 ? kLongestSleepMs : std::min(timeout_ms, kLongestSleepMs);
    lock.unlock();
    ::poll(fds.data(), fds.size(), sleep_ms);
    lock.lock();
  }
  line->ring().end_wait();
  if (fds[0].revents != 0) line->ready().drain();
  state.wait_ns += ns_since(start);
  state.turns.waited(Clock::now() - start);
  if (state.trace) state.trace->waited(monotonic_ns(start), monotonic_ns());
  static_cast<void>(state.open());  // closed meanwhile?
  state.drain();
  if (found || (found = state.find_ready(numbers))) return done(*found);
  const auto dead = std::find_if(fds.begin() + 1, fds.end(), [](const pollfd& fd) { return fd.revents != 0; });
  if (dead == fds.end()) return {};
  return {Kind::kDeath, static_cast<std::size_t>(dead - fds.begin() - 1)};
}

}  // namespace infeed
