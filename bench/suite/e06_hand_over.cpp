// What does a batch cost beyond its rows? One row of one byte, one forked worker.
//   spinning: next() again and again, two batches in flight; us of CPU of both sides a batch.
//   sleeping: an epoch of one batch, asked for after 2 ms of sleep, so that both sides sleep and the whole way is in
//   next(); us of CPU of both sides, and latency, beside a bare futex round trip of two processes in the same rounds.
#include <linux/futex.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "bed.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/loader/loader.h"
#include "loader_turn.h"
#include "machine.h"

namespace bench {
namespace {

constexpr auto kIdle = std::chrono::milliseconds(2);

infeed::SyntheticDataset bytes(std::int64_t size) {
  return infeed::SyntheticDataset(size, {{.name = "x", .dtype = infeed::DType::kUInt8, .shape = {}}});
}

infeed::LoaderOptions one_worker() {
  infeed::LoaderOptions result;
  result.num_workers = 1;
  result.worker_kind = infeed::WorkerKind::kFork;
  return result;
}

using Word = std::atomic<std::uint32_t>;

void wait_while(Word& word, std::uint32_t value) {
  while (word.load() == value) syscall(SYS_futex, &word, FUTEX_WAIT, value, nullptr, nullptr, 0);
}

void set_and_wake(Word& word, std::uint32_t value) {
  word.store(value);
  syscall(SYS_futex, &word, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

/// A process that answers each change of one shared word by the same change of another: the least that two sleepers can
/// pay.
class FutexEcho {
 public:
  FutexEcho() : page_(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (page_ == MAP_FAILED) throw std::bad_alloc();
    words_ = new (page_) Word[kBack + 1]{};
    pid_ = fork();
    if (pid_ == 0) answer();
  }
  ~FutexEcho() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(page_, 4096);
  }
  FutexEcho(const FutexEcho&) = delete;
  FutexEcho& operator=(const FutexEcho&) = delete;

  void round_trip() {
    set_and_wake(words_[0], ++round_);
    wait_while(words_[kBack], round_ - 1);
  }

 private:
  static constexpr std::size_t kBack = 32;  // on another cache line

  [[noreturn]] void answer() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::uint32_t seen = 0;;) {
      wait_while(words_[0], seen);
      seen = words_[0].load();
      set_and_wake(words_[kBack], seen);
    }
  }

  void* page_;
  Word* words_ = nullptr;
  std::uint32_t round_ = 0;
  pid_t pid_ = -1;
};

Turn spinning(infeed::Loader& loader, std::int64_t batches) {
  return [&loader, batches](std::uint64_t) {
    const TurnResult turn = run_epoch(loader);
    if (turn.rows != static_cast<std::uint64_t>(batches)) throw std::runtime_error("batches are missing");
    return turn.cpu_s / static_cast<double>(turn.rows) * 1e6;
  };
}

/// Takes epochs of one batch; its median latency. CPU a batch goes to `cpu_us`, but for round 0, which warms up.
double sleep_and_take(infeed::Loader& loader, int times, std::uint64_t round, Series& cpu_us) {
  Series latency;
  const double worker_before = workers_cpu_s(loader);
  double consumer_s = 0;
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(kIdle);
    const double cpu_before = thread_cpu_s();
    const double before = wall_s();
    if (!loader.next()) throw std::runtime_error("the epoch's batch is missing");
    latency.push_back((wall_s() - before) * 1e6);
    consumer_s += thread_cpu_s() - cpu_before;
    if (loader.next()) throw std::runtime_error("the epoch has two batches");
  }
  const double worker_s = workers_cpu_s(loader) - worker_before;
  if (round > 0) cpu_us.push_back((consumer_s + worker_s) / times * 1e6);
  return median(latency);
}

double sleep_and_echo(FutexEcho& echo, int times) {
  Series latency;
  for (int i = 0; i < times; ++i) {
    std::this_thread::sleep_for(kIdle);
    const double before = wall_s();
    echo.round_trip();
    latency.push_back((wall_s() - before) * 1e6);
  }
  return median(latency);
}

void spin(const Bed& bed, Report& report) {
  const auto batches = bed.size<std::int64_t>(200'000, 500);
  const infeed::SyntheticDataset dataset = bytes(batches);
  infeed::Loader loader(dataset, one_worker());
  report.add({.id = "E6",
              .what = "hand-over of an empty batch, spinning, CPU of both sides",
              .unit = "us",
              .rounds = interleave(bed.rounds, {spinning(loader, batches)})[0],
              .better = Better::kLower,
              .must = 5,
              .aim = 1});
}

void sleep_and_wake(const Bed& bed, FutexEcho& echo, Report& report) {
  const int times = bed.size(300, 10);
  const infeed::SyntheticDataset dataset = bytes(1);
  infeed::Loader loader(dataset, one_worker());
  Series cpu_us;
  const std::vector<Series> latency =
      interleave(bed.rounds, {[&](std::uint64_t r) { return sleep_and_take(loader, times, r, cpu_us); },
                              [&](std::uint64_t) { return sleep_and_echo(echo, times); }});
  report.add({.id = "E6",
              .what = "hand-over of an empty batch, both asleep, CPU of both sides",
              .unit = "us",
              .rounds = cpu_us,
              .better = Better::kLower,
              .must = 40,
              .aim = 30});
  report.add({.id = "E6",
              .what = "bare futex round trip, both asleep",
              .unit = "us",
              .rounds = latency[1],
              .better = Better::kLower});
  report.add({.id = "E6",
              .what = "hand-over, both asleep: latency by that of the futex round trip",
              .unit = "x",
              .rounds = ratio(latency[0], latency[1]),
              .better = Better::kLower,
              .must = 1.5,
              .aim = 1.2});
}

}  // namespace

void hand_over(const Bed& bed, Report& report) {
  FutexEcho echo;
  spin(bed, report);
  sleep_and_wake(bed, echo, report);
}

}  // namespace bench
