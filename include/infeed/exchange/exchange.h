#pragma once
/// Whole messages of any bytes between processes. Start with Exchange; see docs/exchange.md.
///
/// The consumer posts numbered tasks, each to one worker or to whoever is free; the worker answers each with one message,
/// written where the consumer reads it: nobody copies it after. What a task or a message means is for both ends to agree
/// on. Workers may come and go at any time.
///
/// Memory: one sparse memory file without a name. A message lies in an extent of it, and stays there, writable and
/// unchanged by anyone, until its last owner is gone, also after the exchange.
/// Death: a worker may die at any moment; bury() gives its tasks back. A worker whose consumer dies exits at once.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/loader/stats.h"

namespace infeed {

struct ExchangeOptions {
  int num_workers = 1;  ///< that may ever live at once, 1 to 256
  /// Tasks that are posted and not taken yet, cancelled ones that still run included. Each costs 128 MiB of addresses.
  int num_slots = 2;
  std::uint64_t memory_limit = 0;  ///< bytes of messages that may be held at once; 0: no limit
  /// The largest message. Default 4 GiB: addresses, not memory. Less where RLIMIT_AS or RLIMIT_FSIZE is low.
  std::size_t extent_bytes = 0;
  /// Memory of idle extents is kept, not given back after a few messages: for a consumer that page-locks it.
  bool keep_memory = false;
};

/// The sizes that both ends must agree on, and whom a worker serves.
struct ExchangeGeometry {
  std::uint64_t control_bytes = 0;
  std::uint64_t extent_bytes = 0;
  int num_extents = 0;
  int spin_us = 0;                ///< before a worker sleeps; 0 where workers and consumer exceed the usable cores
  std::int64_t consumer_pid = 0;  ///< the process whose end is the workers' end
};

class ExchangeLine;  // src/exchange/line.h

/// What a worker needs to attach. Within the consumer's process, and in children forked from it, it refers to the
/// exchange and keeps nothing alive; in other processes it owns two descriptors. Threads: a value.
class INFEED_API ExchangeHandle {
 public:
  explicit ExchangeHandle(std::weak_ptr<ExchangeLine> line) : line_(std::move(line)) {}
  /// In a process that is no child of the consumer's: takes over both descriptors, which it got from there.
  [[nodiscard]] static ExchangeHandle adopt(int arena_fd, int ready_fd, const ExchangeGeometry& geometry);

  /// What adopt() needs elsewhere; the descriptors stay owned here. Throw Error if the exchange is closed.
  [[nodiscard]] int arena_fd() const;
  [[nodiscard]] int ready_fd() const;
  [[nodiscard]] ExchangeGeometry geometry() const;

 private:
  friend class ExchangeWorker;
  struct Received;
  [[nodiscard]] std::shared_ptr<ExchangeLine> line() const;
  std::weak_ptr<ExchangeLine> line_;
  std::shared_ptr<const Received> received_;
};

/// A message in the consumer's hands: `bytes` stay valid until the last copy of `owner` is gone. Any thread may drop it.
struct ExchangeMessage {
  std::shared_ptr<void> owner;
  std::span<std::byte> bytes;
};

/// Why wait() returned.
struct ExchangeEvent {
  enum class Kind : std::uint8_t {
    kNone,   ///< nothing yet: the time is over, or a signal came, or it looks again for safety
    kReady,  ///< numbers[index] can be taken
    kDeath,  ///< death_fds[index] is readable
  };
  Kind kind = Kind::kNone;
  std::size_t index = 0;
};

/// Counters since the exchange was made.
struct ExchangeStats {
  struct Worker {
    std::int64_t pid = 0;  ///< 0: never attached
    std::uint64_t tasks = 0;
    std::uint64_t busy_ns = 0;     ///< from claim to publish
    std::uint64_t wait_ns = 0;     ///< for tasks
    std::uint64_t collate_ns = 0;  ///< of busy_ns, as the worker says
    double in_hand_s = 0;          ///< how long it has had its present task; 0: none
    bool retired = false;
  };
  int extents = 0, extents_free = 0;
  int held = 0;  ///< messages with the user, private copies included
  std::uint64_t held_bytes = 0;
  std::uint64_t committed_bytes = 0;     ///< memory that the arena holds now: warm extents and control block
  std::uint64_t waits = 0, wait_ns = 0;  ///< of the consumer, for messages
  std::vector<Worker> workers;
};

/// The consumer's end.
///
/// Threads: any; each call is short but wait(), which lets others in while it sleeps.
/// Fork: in a forked child it is inert: close() and the destructor do nothing, the other calls throw Error. Messages
/// that are held at a fork by the user are never reused, since the child may read them; see WorkerFork.
class INFEED_API Exchange {
 public:
  /// Throws ConfigError for sizes out of range, MemoryError with the limit that leaves too little.
  explicit Exchange(const ExchangeOptions& options);
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  ~Exchange();

  [[nodiscard]] ExchangeHandle handle() const;

  /// As the worker of post(): whoever is free first.
  static constexpr int kAnyWorker = -1;
  /// Gives `worker` a task. `number` must not be in flight. Throws ConfigError for a number or worker that cannot be,
  /// or a task larger than max_task_words(), Error where no slot is free.
  void post(std::uint64_t number, int worker, std::span<const std::int64_t> indices);
  void post(std::uint64_t number, int worker, std::span<const std::byte> bytes);
  /// Indices, or eighths of bytes, of the largest task: 2^24, fewer where addresses are limited.
  [[nodiscard]] std::size_t max_task_words() const;

  /// Sleeps until one of `numbers` is ready (the first one that is; it wins over a death) or one of `death_fds` is
  /// readable; at most `timeout_ms` (negative: no limit) and never longer than kLongestSleepMs: call it in a loop.
  [[nodiscard]] ExchangeEvent wait(std::span<const std::uint64_t> numbers, std::span<const int> death_fds,
                                   int timeout_ms);
  /// A process that is stopped between its last write and its ring rings nobody: no sleep is longer than this.
  static constexpr int kLongestSleepMs = 50;

  [[nodiscard]] bool ready(std::uint64_t number) const;
  /// Place of the first of `numbers` that is ready. Throws Error for one that is not in flight.
  [[nodiscard]] std::optional<std::size_t> first_ready(std::span<const std::uint64_t> numbers) const;
  /// Frees the task's slot and lends its message. Where extents are scarce the message is a private copy.
  /// Throws Error if it is not ready, MemoryError if it would exceed memory_limit: it stays ready then.
  [[nodiscard]] ExchangeMessage take(std::uint64_t number);
  /// After `worker` is surely dead (its pidfd is readable): its tasks wait for the next worker of that id, what it had in
  /// hand of anyone's for any other. Returns the numbers of both, those that are unfinished, in no order.
  std::vector<std::uint64_t> bury(int worker);
  /// `worker` finishes the task in hand, then sees stopping(). Tasks posted to it alone wait for recruit(). Call bury()
  /// when it has ended: it may have died in its last task.
  void retire(int worker);
  /// A worker of this id may work, as all may at first. Not before the retired one of that id has ended.
  void recruit(int worker);
  /// Drops a task: not started, it never will be; started, its slot and extent come home when it is published. Unknown
  /// numbers are none of its business.
  void cancel(std::uint64_t number);

  void stop();            ///< the workers see stopping() and leave
  void close() noexcept;  ///< stops, and lets go of the memory; idempotent. Messages in the user's hands stay valid

  [[nodiscard]] int held() const;
  /// Task number and dataset index (-1: none) that `worker` noted last, for error texts.
  [[nodiscard]] std::pair<std::uint64_t, std::int64_t> sample_in_hand(int worker) const;
  [[nodiscard]] ExchangeStats stats() const;

  /// The loader's next() begins; drew the indices of a batch; ends, with so many samples (negative: without a batch).
  /// For loader_stats().
  void turn_began() noexcept;
  void turn_drew(std::uint64_t ns) noexcept;
  void turn_ended(std::int64_t samples) noexcept;
  /// The same figures as a native loader's. `prefetch_factor`: tasks ahead, for each worker.
  [[nodiscard]] LoaderStats loader_stats(int prefetch_factor) const;

 private:
  struct State;
  [[nodiscard]] State& ours() const;
  std::unique_ptr<State> state_;
};

/// While one lives, forks of this thread make workers of ours: messages held meanwhile are not kept for the child, whose
/// dataset must be kept by the consumer as long as the worker runs (as a loader does).
class INFEED_API WorkerFork {
 public:
  WorkerFork();
  ~WorkerFork();
  WorkerFork(const WorkerFork&) = delete;
  WorkerFork& operator=(const WorkerFork&) = delete;

 private:
  struct Watch;
  std::unique_ptr<Watch> watch_;
};

/// A task that a worker claimed: indices or bytes, valid until publish().
struct ExchangeTask {
  std::uint64_t number = 0;
  bool is_bytes = false;
  std::span<const std::int64_t> indices;
  std::span<const std::byte> bytes;
};

/// A worker's end. One living worker a id.
///
/// Threads: one. Death of the consumer: in another process a thread of ours (64 KiB of stack, all signals blocked)
/// watches the consumer and ends this process with code 91, also in the middle of a task.
class INFEED_API ExchangeWorker {
 public:
  /// Make it before anything else of infeed's: in a child that was forked from the consumer, the memory of all its other exchanges and loaders is unmapped here,
  /// but for those whose batches are held. Throws ConfigError for a handle that does not fit, Error for a closed one.
  ExchangeWorker(const ExchangeHandle& handle, int worker);
  ExchangeWorker(const ExchangeWorker&) = delete;
  ExchangeWorker& operator=(const ExchangeWorker&) = delete;
  ~ExchangeWorker();

  /// The oldest task that is posted to this worker. Sleeps at most `timeout_ms`, never longer than
  /// Exchange::kLongestSleepMs: call it in a loop, and look at stopping(). Throws Error before the last one is published.
  [[nodiscard]] std::optional<ExchangeTask> claim(int timeout_ms);
  /// Where the claimed task's message goes: a whole extent. Void after publish(). Throws Error if nothing is claimed.
  [[nodiscard]] std::span<std::byte> memory() const;
  /// Owner of the mapping behind memory(), for whoever may outlive this.
  [[nodiscard]] std::shared_ptr<const void> mapping() const noexcept;
  /// The dataset index in hand, for error texts.
  void note(std::int64_t index) noexcept;
  /// The first `nbytes` of memory() are the message; `collate_ns` of the time since claim() went into collating, for
  /// stats(). Throws ConfigError for more bytes than there are.
  void publish(std::size_t nbytes, std::uint64_t collate_ns = 0);
  [[nodiscard]] bool stopping() const noexcept;  ///< the exchange stops, or this worker is retired: leave
  [[nodiscard]] int worker() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace infeed
