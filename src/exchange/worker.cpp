#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "exchange/line.h"
#include "exchange/received.h"
#include "exchange/task.h"
#include "exchange/watch.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

// Longer than any spin and wake-up: the consumer computes, so the next wait will be long too.
constexpr std::uint64_t kLongWaitNs = 500'000;

int duplicate(int fd) {
  const int copy = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) throw MemoryError(fmt::format("descriptor {} cannot be duplicated: {}.", fd, std::strerror(errno)));
  return copy;
}

// Bytes that bypassed the cache must reach memory before the done bit does.
void drain_non_temporal_stores() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace

struct ExchangeWorker::State {
  std::shared_ptr<const void> keep;  ///< the consumer's line, where this process has it
  std::shared_ptr<const Arena> arena;
  Descriptor own_ready;  ///< where it has not
  int ready_fd = -1;
  std::optional<Ring> ring;
  int worker = 0;
  int spin_us = 0;
  std::int64_t pid = ::getpid();
  std::optional<Claim> claim{};
  std::uint64_t claimed_ns = 0, last_wait_ns = 0;

  void attach_to(std::shared_ptr<ExchangeLine> line);
  void attach_by(int arena_fd, int ready_fd, const ExchangeGeometry& geometry);
  void wait(std::uint32_t seen_bell, int timeout_ms);
};

/// The mapping is here already: in the consumer's process itself, or by inheritance.
void ExchangeWorker::State::attach_to(std::shared_ptr<ExchangeLine> line) {
  arena = std::shared_ptr<const Arena>(line->memory(), &line->arena());
  ready_fd = line->ready().fd();
  if (!line->memory()->ours()) arena->drop_others();
  keep = std::move(line);
}

void ExchangeWorker::State::attach_by(int arena_fd, int fd, const ExchangeGeometry& geometry) {
  const ArenaOptions sizes{.control_bytes = geometry.control_bytes,
                           .extent_bytes = geometry.extent_bytes,
                           .num_extents = geometry.num_extents,
                           .min_extents = 1};
  arena = std::make_shared<const Arena>(Arena::attach(Memfd::adopt(duplicate(arena_fd)), sizes));
  own_ready = Descriptor(duplicate(fd));
  ready_fd = own_ready.fd();
}

void ExchangeWorker::State::wait(std::uint32_t seen_bell, int timeout_ms) {
  const std::uint64_t start = monotonic_ns();
  const int limit = timeout_ms < 0 ? Exchange::kLongestSleepMs : std::min(timeout_ms, Exchange::kLongestSleepMs);
  ring->wait_for_work(worker, seen_bell, last_wait_ns < kLongWaitNs ? spin_us : 0, limit);
  last_wait_ns = monotonic_ns() - start;
  ring->add_stats(worker, {.pid = pid, .wait_ns = last_wait_ns});
}

ExchangeWorker::ExchangeWorker(const ExchangeHandle& handle, int worker) : state_(std::make_unique<State>()) {
  State& s = *state_;
  const ExchangeGeometry geometry = handle.geometry();
  if (geometry.consumer_pid != ::getpid()) watch_consumer(static_cast<pid_t>(geometry.consumer_pid));
  if (handle.received_)
    s.attach_by(handle.arena_fd(), handle.ready_fd(), geometry);
  else
    s.attach_to(handle.line());
  s.ring = Ring::attach(s.arena->control(), geometry.control_bytes);
  if (worker < 0 || worker >= s.ring->config().max_claimants)
    throw ConfigError(fmt::format("worker {} in an exchange of {} workers.", worker, s.ring->config().max_claimants));
  s.worker = worker;
  s.spin_us = geometry.spin_us;
  s.ring->add_stats(worker, {.pid = s.pid});
  s.ring->note_sample(worker, 0, -1);
}

// It may have been woken for a task that another shall do.
ExchangeWorker::~ExchangeWorker() { state_->ring->ring_workers(false); }

std::optional<ExchangeTask> ExchangeWorker::claim(int timeout_ms) {
  State& s = *state_;
  if (s.claim) throw Error(fmt::format("worker {} claims before task {} is published.", s.worker, s.claim->number));
  const std::uint32_t bell = s.ring->bell();  // before the tests: what is rung after them ends the wait
  if (stopping()) return std::nullopt;
  s.claim = s.ring->claim(s.worker);
  if (!s.claim && timeout_ms != 0) {
    s.wait(bell, timeout_ms);
    if (!stopping()) s.claim = s.ring->claim(s.worker);
  }
  if (!s.claim) return std::nullopt;
  s.claimed_ns = monotonic_ns();
  s.ring->note_claim(s.worker, s.claimed_ns);
  note(-1);
  ExchangeTask task = unpack_task(s.claim->indices);
  task.number = s.claim->number;
  return task;
}

std::span<std::byte> ExchangeWorker::memory() const {
  const State& s = *state_;
  if (!s.claim) throw Error(fmt::format("worker {} has claimed no task.", s.worker));
  return {s.arena->extent(s.claim->extent), s.arena->extent_bytes()};
}

std::shared_ptr<const void> ExchangeWorker::mapping() const noexcept { return state_->arena; }

void ExchangeWorker::note(std::int64_t index) noexcept {
  if (state_->claim) state_->ring->note_sample(state_->worker, state_->claim->number, index);
}

void ExchangeWorker::publish(std::size_t nbytes, std::uint64_t collate_ns) {
  State& s = *state_;
  if (nbytes > memory().size())
    throw ConfigError(fmt::format("a message of {} bytes does not fit an extent of {}.", nbytes, memory().size()));
  drain_non_temporal_stores();
  note(-1);
  s.ring->set_result(*s.claim, s.claim->rows, nbytes, false);
  const std::uint64_t end = monotonic_ns();
  s.ring->add_stats(s.worker, {.pid = s.pid, .runs = 1, .busy_ns = end - s.claimed_ns, .collate_ns = collate_ns});
  s.ring->note_claim(s.worker, 0);
  if (s.ring->tracing())
    s.ring->trace_run(s.worker, {.begin_ns = s.claimed_ns,
                                 .end_ns = end,
                                 .seq = s.claim->seq,
                                 .collate_ns = collate_ns,
                                 .thread = static_cast<std::uint32_t>(::gettid())});
  s.ring->publish(*s.claim, s.ready_fd);
  s.claim.reset();
}

bool ExchangeWorker::stopping() const noexcept {
  return state_->ring->stopping() || state_->ring->retired(state_->worker);
}
int ExchangeWorker::worker() const noexcept { return state_->worker; }

}  // namespace infeed
