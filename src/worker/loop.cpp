#include "worker/loop.h"

#include <unistd.h>

#include "base/clock.h"
#include "worker/fill.h"

namespace infeed {
namespace {

// A consumer that was stopped between arming and ringing wakes nobody.
constexpr int kWaitLimitMs = 100;
// Longer than any spin and wake-up: the consumer computes, so the next wait will be long too.
constexpr std::uint64_t kLongWaitNs = 500'000;

// Rows that bypassed the cache must reach memory before the done bit does; a release store alone does not order them.
void drain_non_temporal_stores() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

/// gettid() is a system call; a fork keeps what was thread-local.
std::uint32_t thread_id(std::int64_t process) noexcept {
  thread_local std::int64_t known_in = 0;
  thread_local std::uint32_t id = 0;
  if (known_in != process) {
    known_in = process;
    id = static_cast<std::uint32_t>(::gettid());
  }
  return id;
}

}  // namespace

struct WorkerLoop::State {
  State(Ring& r, const Arena& arena, const WorkPlan& plan, int id, int eventfd)
      : ring(r), filler(r, arena, plan), claimant(id), ready_eventfd(eventfd), pid(::getpid()) {}

  void wait(std::uint32_t seen_bell, int spin_us) noexcept;
  void trace(const Claim& claim, RunTrace run, const StageTimes& times) noexcept;

  Ring& ring;
  Filler filler;
  int claimant;
  int ready_eventfd;
  std::int64_t pid;
  std::uint64_t last_wait_ns = 0;
};

WorkerLoop::WorkerLoop(Ring& ring, const Arena& arena, const WorkPlan& plan, int claimant, int ready_eventfd)
    : state_(std::make_unique<State>(ring, arena, plan, claimant, ready_eventfd)) {
  ring.add_stats(claimant, {.pid = state_->pid});
  ring.note_sample(claimant, 0, -1);
}

WorkerLoop::~WorkerLoop() = default;

bool WorkerLoop::step() {
  State& s = *state_;
  const std::optional<Claim> claim = s.ring.claim(s.claimant);
  if (!claim) return false;
  const std::uint64_t begin = monotonic_ns();
  s.ring.note_claim(s.claimant, begin);
  StageTimes times;
  std::uint64_t collate_ns = 0;
  if (!s.filler.fill(*claim, times, collate_ns)) return false;
  drain_non_temporal_stores();
  const std::uint64_t end = monotonic_ns();
  // Before publish(): whoever has the batch in hand finds it counted.
  s.ring.add_stats(s.claimant, {.pid = s.pid,
                                .rows = static_cast<std::uint64_t>(claim->rows),
                                .runs = 1,
                                .read_ns = times.read_ns,
                                .decode_ns = times.decode_ns,
                                .transform_ns = times.transform_ns,
                                .bytes_read = times.bytes_read,
                                .busy_ns = end - begin,
                                .collate_ns = collate_ns});
  s.ring.note_claim(s.claimant, 0);
  if (s.ring.tracing()) s.trace(*claim, {.begin_ns = begin, .end_ns = end, .collate_ns = collate_ns}, times);
  s.ring.publish(*claim, s.ready_eventfd);
  return true;
}

void WorkerLoop::run(int spin_us, bool (*alive)()) {
  State& s = *state_;
  for (;;) {
    const std::uint32_t bell = s.ring.bell();  // before the tests: what is rung after them ends the wait
    if (s.ring.stopping() || s.ring.retired(s.claimant)) return;
    if (step()) continue;
    if (alive != nullptr && !alive()) return;
    s.wait(bell, spin_us);
  }
}

void WorkerLoop::State::wait(std::uint32_t seen_bell, int spin_us) noexcept {
  const std::uint64_t begin = monotonic_ns();
  ring.wait_for_work(claimant, seen_bell, last_wait_ns < kLongWaitNs ? spin_us : 0, kWaitLimitMs);
  last_wait_ns = monotonic_ns() - begin;
  ring.add_stats(claimant, {.pid = pid, .wait_ns = last_wait_ns});
}

void WorkerLoop::State::trace(const Claim& claim, RunTrace run, const StageTimes& times) noexcept {
  run.seq = claim.seq;
  run.read_ns = times.read_ns;
  run.decode_ns = times.decode_ns;
  run.transform_ns = times.transform_ns;
  run.rows = static_cast<std::uint32_t>(claim.rows);
  run.thread = thread_id(pid);
  ring.trace_run(claimant, run);
}

}  // namespace infeed
