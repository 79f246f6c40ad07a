// What a batch costs beyond its rows: claims, publication, and the hand-over between worker and consumer.
//
// Read: time is the latency of one round; cpu_us is the CPU time of both sides for one batch.
//   ClaimAndPublish    one thread, no contention: the floor under every run. Tens of ns; hundreds mean false sharing.
//   HandOverSpinning   arm -> claim -> publish -> take in lock-step, both spin. Below 1 us of CPU on two free cores.
//   HandOverSleeping   the same, both sleep each time: compare with FutexRoundTrip, the least that two sleepers pay.
#include <benchmark/benchmark.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <new>
#include <numeric>
#include <vector>

#include "memory/arena.h"
#include "ring/ring.h"

namespace infeed {
namespace {

constexpr int kSpinUs = 20;

double cpu_us(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

/// Keeps the calling thread on the n-th usable core while it lives.
class Pinned {
 public:
  explicit Pinned(int n) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_) && n-- == 0) CPU_SET(cpu, &one);
    }
    if (CPU_COUNT(&one) == 1) sched_setaffinity(0, sizeof one, &one);
  }
  ~Pinned() { sched_setaffinity(0, sizeof before_, &before_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  cpu_set_t before_{};
};

/// A forked worker; its CPU time can be read while it lives.
class Child {
 public:
  explicit Child(const std::function<void()>& body) : pid_(fork()) {
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      body();
      _exit(0);
    }
    clock_getcpuclockid(pid_, &clock_);
    start_us_ = both_us();
  }
  ~Child() { waitpid(pid_, nullptr, 0); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Of this process and the child, since the child was made.
  [[nodiscard]] double used_us() const { return both_us() - start_us_; }

 private:
  [[nodiscard]] double both_us() const { return cpu_us(CLOCK_PROCESS_CPUTIME_ID) + cpu_us(clock_); }
  pid_t pid_;
  clockid_t clock_ = 0;
  double start_us_ = 0;
};

struct Bed {
  explicit Bed(int rows)
      : config{.num_slots = 4, .max_rows = rows, .max_claimants = 2, .num_extents = 4},
        arena(Arena::create({.control_bytes = Ring::bytes(config), .extent_bytes = 1, .num_extents = 4})),
        ring(Ring::format(arena.control(), config)),
        event(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
        indices(static_cast<std::size_t>(rows)) {
    std::iota(indices.begin(), indices.end(), 0);
  }
  ~Bed() { close(event); }
  Bed(const Bed&) = delete;
  Bed& operator=(const Bed&) = delete;

  int arm() {
    return ring.arm(
        {.seq = ++seq, .indices = indices, .rows = static_cast<int>(indices.size()), .extent = ring.acquire_extent()});
  }
  void take(int slot) { ring.release_extent(ring.take(slot).extent); }

  /// The worker's side: nothing is written.
  void work(int spin_us) {
    for (;;) {
      const auto seen = ring.bell();
      if (ring.stopping()) return;
      if (const auto claim = ring.claim(0)) {
        ring.publish(*claim, event);
      } else {
        ring.wait_for_work(0, seen, spin_us, 50);
      }
    }
  }

  void sleep_until_ready(int slot) {
    while (!ring.ready(slot)) {
      ring.begin_wait();
      pollfd entry{event, POLLIN, 0};
      if (!ring.ready(slot)) poll(&entry, 1, 50);
      ring.end_wait();
      std::uint64_t count = 0;
      if (entry.revents != 0) [[maybe_unused]]
        const auto got = read(event, &count, sizeof count);
    }
  }

  RingConfig config;
  Arena arena;
  Ring ring;
  int event;
  std::vector<std::int64_t> indices;
  std::uint64_t seq = 0;
};

void ClaimAndPublish(benchmark::State& state) {
  Bed bed(static_cast<int>(state.range(0)));
  std::int64_t runs = 0;
  for (auto _ : state) {
    const int slot = bed.arm();
    for (; auto claim = bed.ring.claim(0); ++runs) bed.ring.publish(*claim, -1);
    bed.take(slot);
  }
  state.counters["ns_per_run"] =
      benchmark::Counter(static_cast<double>(runs) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK(ClaimAndPublish)->ArgName("rows")->Arg(1)->Arg(64)->Arg(256);

void HandOverSpinning(benchmark::State& state) {
  Bed bed(static_cast<int>(state.range(0)));
  const Child worker([&] {
    const Pinned pinned(1);
    bed.work(kSpinUs);
  });
  const Pinned pinned(0);  // two that spin for each other on one core measure the scheduler
  for (auto _ : state) {
    const int slot = bed.arm();
    bed.ring.ring_workers(false, bed.ring.open_runs());
    for (int i = 0; !bed.ring.ready(slot) && i < 4000; ++i) __builtin_ia32_pause();
    bed.sleep_until_ready(slot);
    bed.take(slot);
  }
  state.counters["cpu_us"] = worker.used_us() / static_cast<double>(state.iterations());
  bed.ring.request_stop();
}
BENCHMARK(HandOverSpinning)->ArgName("rows")->Arg(1)->Arg(64)->UseRealTime();

void HandOverSleeping(benchmark::State& state) {
  Bed bed(1);
  const Child worker([&] { bed.work(0); });
  for (auto _ : state) {
    const int slot = bed.arm();
    bed.ring.ring_workers(false, 1);
    bed.sleep_until_ready(slot);
    bed.take(slot);
  }
  state.counters["cpu_us"] = worker.used_us() / static_cast<double>(state.iterations());
  bed.ring.request_stop();
}
BENCHMARK(HandOverSleeping)->UseRealTime();

void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  while (word.load() == value) syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void set_and_wake(std::atomic<std::uint32_t>& word, std::uint32_t value) {
  word.store(value);
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/// Two processes, one word each, nothing else.
void FutexRoundTrip(benchmark::State& state) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto* words = new (page) std::atomic<std::uint32_t>[64] {};  // 0: ours, 32: the other's, on another cache line
  constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  const Child echo([&] {
    for (std::uint32_t seen = 0; seen != kEnd;) {
      wait_while(words[0], seen);
      seen = words[0].load();
      set_and_wake(words[32], seen);
    }
  });
  std::uint32_t round = 0;
  for (auto _ : state) {
    set_and_wake(words[0], ++round);
    wait_while(words[32], round - 1);
  }
  state.counters["cpu_us"] = echo.used_us() / static_cast<double>(state.iterations());
  set_and_wake(words[0], kEnd);
  wait_while(words[32], round);
  munmap(page, 4096);
}
BENCHMARK(FutexRoundTrip)->UseRealTime();

}  // namespace
}  // namespace infeed

BENCHMARK_MAIN();
