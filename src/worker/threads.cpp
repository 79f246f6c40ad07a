#include "worker/threads.h"

#include <fmt/format.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <latch>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "worker/loop.h"
#include "worker/parallelism.h"
#include "worker/parent_guard.h"
#include "worker/process.h"
#include "worker/thread_names.h"
#include "worker/worker.h"

namespace infeed {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(2);

// Bits of a seat's word. A notice that comes while the seat's task looks for work makes it look again: each side
// changes the word by read-modify-write, so whoever comes second sees what the first did before.
constexpr unsigned kTask = 1;    // a task was given to the arena and has not ended
constexpr unsigned kNotice = 2;  // work was armed since the task began to look

// The CPU of a thread that is not ours alone.
class BoundWhile {
 public:
  explicit BoundWhile(int cpu) : bound_(cpu >= 0 && ::sched_getaffinity(0, sizeof saved_, &saved_) == 0) {
    if (bound_) bind_this_thread(cpu);
  }
  ~BoundWhile() {
    if (bound_) ::sched_setaffinity(0, sizeof saved_, &saved_);
  }
  BoundWhile(const BoundWhile&) = delete;
  BoundWhile& operator=(const BoundWhile&) = delete;

 private:
  cpu_set_t saved_;
  bool bound_;
};

[[noreturn]] void throw_no_thread(int worker_id, const std::exception& error) {
  throw MemoryError(fmt::format(
      "no thread for worker {}: {}. Lower num_workers, or raise the limit of processes (ulimit -u, the container's "
      "pids.max).",
      worker_id, error.what()));
}

// oneTBB starts threads from threads of its own, where a failure would end the process: whether there is room for
// `count` more is tried before.
void try_threads(int count, int threads_per_worker, int first_worker) {
  if (count <= 0) return;
  const SignalsBlocked blocked;
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(count));
  std::latch tried(1);
  try {
    for (int i = 0; i < count; ++i) threads.emplace_back([&tried] { tried.wait(); });
  } catch (const std::system_error& error) {
    tried.count_down();
    const auto made = static_cast<int>(threads.size());
    for (std::thread& thread : threads) thread.join();
    throw_no_thread(first_worker + made / threads_per_worker, error);
  }
  tried.count_down();
  for (std::thread& thread : threads) thread.join();
}

// One claimant.
struct ThreadSeat {
  int claimant = 0;
  std::atomic<unsigned> word{0};
  std::unique_ptr<WorkerLoop> loop;
  Clock::time_point idle_since = Clock::now();  // the task's alone while there is one
};

// The seats of one worker share its start.
struct ThreadWorker {
  WorkerSeat who;
  std::once_flag start;
  bool started = false;
};

}  // namespace

struct ThreadPool::State {
  State(const PoolOptions& pool_options, Ring& r, const Arena& a, const WorkPlan& p)
      : options(pool_options), ring(r), memory(a), plan(p) {}

  void grow_to(int workers);
  void make_arena();
  bool wake(ThreadSeat& seat);
  void task(ThreadSeat& seat) noexcept;
  bool enter(ThreadWorker& worker) noexcept;
  void start(ThreadWorker& worker) noexcept;
  void drain(ThreadSeat& seat) noexcept;
  void end_task() noexcept;
  void wait_for_tasks();
  [[nodiscard]] std::size_t seats_in_use() const {
    return static_cast<std::size_t>(num_workers) * static_cast<std::size_t>(options.threads_per_worker);
  }

  PoolOptions options;
  Ring& ring;
  const Arena& memory;
  const WorkPlan& plan;
  int num_workers = 0;
  std::vector<std::unique_ptr<ThreadWorker>> workers;
  std::vector<std::unique_ptr<ThreadSeat>> seats;  // by claimant; those of workers that left stay
  ThreadNames names;

  std::mutex mutex;
  std::condition_variable no_tasks;
  int tasks = 0;

  std::optional<ExtraParallelism> parallelism;
  // Tasks may still stand in an arena that was outgrown: all live as long as the pool. The last is in use.
  std::vector<std::unique_ptr<tbb::task_arena>> arenas;
};

void ThreadPool::State::grow_to(int wanted) {
  const int first = static_cast<int>(workers.size());
  try_threads((wanted - first) * options.threads_per_worker, options.threads_per_worker, first);
  for (int id = first; id < wanted; ++id) {
    auto worker = std::make_unique<ThreadWorker>();
    const auto& cpus = options.cpu_affinity;
    worker->who = WorkerSeat{.info = {.id = id, .num_workers = wanted, .seed = plan.seed},
                             .threads = options.threads_per_worker,
                             .ready_eventfd = options.ready_eventfd,
                             .cpu = cpus.empty() ? -1 : cpus[static_cast<std::size_t>(id) % cpus.size()],
                             .init = &options.worker_init};
    for (int thread = 0; thread < options.threads_per_worker; ++thread) {
      auto seat = std::make_unique<ThreadSeat>();
      seat->claimant = worker->who.first_claimant() + thread;
      seat->loop = std::make_unique<WorkerLoop>(ring, memory, plan, seat->claimant, options.ready_eventfd);
      seats.push_back(std::move(seat));
    }
    workers.push_back(std::move(worker));
  }
}

void ThreadPool::State::make_arena() {
  const int threads = static_cast<int>(seats.size());
  parallelism.emplace(threads);
  arenas.push_back(std::make_unique<tbb::task_arena>(threads, 0));  // 0: the consumer never works in it
}

// True if the seat was idle.
bool ThreadPool::State::wake(ThreadSeat& seat) {
  const unsigned before = seat.word.fetch_or(kTask | kNotice, std::memory_order_acq_rel);
  if ((before & kTask) != 0) return false;
  {
    const std::lock_guard lock(mutex);
    ++tasks;
  }
  try {
    // Unchecked: what oneTBB does between its threads is out of ThreadSanitizer's sight, so the capture looks
    // unordered.
    arenas.back()->enqueue([ this, &seat ]() __attribute__((no_sanitize("thread"))) { task(seat); });
  } catch (const std::exception& error) {
    end_task();
    seat.word.store(0, std::memory_order_release);
    throw_no_thread(seat.claimant / options.threads_per_worker, error);
  }
  return true;
}

void ThreadPool::State::task(ThreadSeat& seat) noexcept {
  (void)seat.word.load(std::memory_order_acquire);  // pairs with wake(): what the consumer made is there
  ThreadWorker& worker = *workers[static_cast<std::size_t>(seat.claimant / options.threads_per_worker)];
  {
    const BoundWhile bound(worker.who.cpu);
    if (enter(worker)) drain(seat);
  }
  end_task();
}

// False where the worker could not start: its seats keep their task bit, and get no task again.
bool ThreadPool::State::enter(ThreadWorker& worker) noexcept {
  names.lend(worker.who.info.id);
  std::call_once(worker.start, [&] { start(worker); });
  return worker.started;
}

void ThreadPool::State::start(ThreadWorker& worker) noexcept {
  try {
    if (*worker.who.init) (*worker.who.init)(worker.who.info);
    worker.started = true;
  } catch (...) {
    report_failed_start(worker.who, ring, std::current_exception());
  }
}

void ThreadPool::State::drain(ThreadSeat& seat) noexcept {
  const auto idle = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - seat.idle_since);
  ring.add_stats(seat.claimant, {.pid = ::getpid(), .wait_ns = static_cast<std::uint64_t>(idle.count())});
  for (;;) {
    seat.word.fetch_and(~kNotice, std::memory_order_acq_rel);
    while (!ring.stopping() && !ring.retired(seat.claimant) && seat.loop->step()) {
    }
    seat.idle_since = Clock::now();
    unsigned expected = kTask;
    if (seat.word.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;
  }
}

// The pool may be gone as soon as the lock is.
void ThreadPool::State::end_task() noexcept {
  const std::lock_guard lock(mutex);
  if (--tasks == 0) no_tasks.notify_all();
}

void ThreadPool::State::wait_for_tasks() {
  std::unique_lock lock(mutex);
  const auto done = [this] { return tasks == 0; };
  if (no_tasks.wait_for(lock, kPatience, done)) return;
  for (const auto& seat : seats) {
    const ClaimantStats stats = ring.stats(seat->claimant);
    if (stats.index < 0) continue;
    log(LogLevel::kWarning, fmt::format("worker thread {} still reads sample {} of batch {}; a thread cannot be "
                                        "killed, so the loader's end waits for it. Processes (kFork, kSpawn) can be.",
                                        seat->claimant / options.threads_per_worker, stats.index, stats.batch));
  }
  no_tasks.wait(lock, done);
}

ThreadPool::ThreadPool(const PoolOptions& options, Ring& ring, const Arena& arena, const WorkPlan& plan)
    : state_(std::make_unique<State>(options, ring, arena, plan)) {
  resize(options.num_workers);
}

ThreadPool::~ThreadPool() {
  if (!state_) return;
  state_->ring.request_stop();
  state_->wait_for_tasks();
}

void ThreadPool::notify(int runs) {
  State& s = *state_;
  const int wanted = s.plan.any_claimant ? runs : kMaxClaimants;
  int woken = 0;
  for (std::size_t i = 0; i < s.seats_in_use() && woken < wanted; ++i) woken += s.wake(*s.seats[i]) ? 1 : 0;
}

void ThreadPool::notify_claimant(int claimant) { state_->wake(*state_->seats[static_cast<std::size_t>(claimant)]); }

void ThreadPool::resize(int num_workers) {
  State& s = *state_;
  const std::size_t before = s.seats.size();
  s.grow_to(num_workers);
  if (s.seats.size() > before) s.make_arena();
  s.num_workers = num_workers;
  for (std::size_t i = 0; i < s.seats.size(); ++i) s.ring.retire(static_cast<int>(i), i >= s.seats_in_use());
  if (before > 0) notify(kMaxClaimants);
}

int ThreadPool::num_workers() const { return state_->num_workers; }

// The tasks' threads do not exist in the child, and oneTBB's memory there is not to be touched.
void ThreadPool::abandon_in_child() noexcept { [[maybe_unused]] State* const left = state_.release(); }

}  // namespace infeed

#if defined(__SANITIZE_THREAD__)
// Only what happens in oneTBB's own headers; races in tasks are still found.
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() { return "race_top:oneapi/tbb/\n"; }
#endif
