#pragma once
/// num_workers = kAutoWorkers: the count follows what the trainer needs, a careful step at a time.
///
///        lost > 5 %, workers busy               no gain: back, and wait longer before the next try
///  steady ────────────────────────▶ trying more ───────────────────────────────▶ steady
///    │  lost > 5 %, workers idle
///    ├────────────────────────────▶ trying a deeper queue ── the same ───────────▶ steady
///    │  lost < 2 %, workers idle or
///    └─ more than processors ─────▶ trying fewer ── slower: back, and wait longer ─▶ steady
///
/// What decides is the time for a batch, of the step and of the wait for data together: workers that take the trainer's
/// processors make the one shorter and the other longer. Workers that memory has no room for do not come, and where it
/// is overdrawn some go, for good.

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

namespace infeed {

class AutoWorkers {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    double usable_cpus = 1;
    int threads = 1;  ///< of each worker
    int most = 0;     ///< workers; 0: most_for()
    int first = 0;    ///< workers to begin with; 0: half of the CPUs, 1 to 4
    int deepest = 1;  ///< times the usual depth that the queue may become
  };
  struct Change {
    int workers = 0;
    int times_deeper = 1;  ///< the queue, than it usually is with so many workers
    std::string why = {};
  };
  /// Sums over all claimants since they started.
  struct WorkerTime {
    std::uint64_t busy_ns = 0, idle_ns = 0;
    std::uint64_t awake_ns = 0;  ///< of busy_ns: on a processor or queued for one, not asleep in a read; 0: unknown
  };
  /// Bytes.
  struct Memory {
    std::int64_t left = std::numeric_limits<std::int64_t>::max();  ///< below 0: the budget is overdrawn
    std::uint64_t worker = 0;                                      ///< what one more takes
    std::uint64_t queue = 0;                                       ///< what the batches in flight take
  };
  /// May take milliseconds: asked before workers come, after they came, and once in a while.
  using AskMemory = std::function<Memory()>;

  /// With the workers that a loader begins with.
  explicit AutoWorkers(const Limits& limits) noexcept;
  [[nodiscard]] int workers() const noexcept { return workers_; }
  [[nodiscard]] int most() const noexcept { return limits_.most; }
  [[nodiscard]] int times_deeper() const noexcept { return times_deeper_; }

  /// Most workers that are of use where `usable_cpus` are there: reads that sleep may have more than processors.
  [[nodiscard]] static int most_for(double usable_cpus, int threads) noexcept;

  void called(Clock::time_point now) noexcept;
  /// True where look() is to be called: as a window begins, and where enough was seen. After a call without a batch
  /// nothing counts.
  [[nodiscard]] bool returned(bool with_batch, Clock::time_point now) noexcept;
  [[nodiscard]] std::optional<Change> look(const WorkerTime& now, const AskMemory& memory = {});
  /// What comes next has nothing to do with what was: an epoch ended or was left.
  void interrupted() noexcept;
  /// The change could not be made: `workers` it is, and no more.
  void refused(int workers) noexcept;

 private:
  struct Window {
    double pace_s = 0;  ///< a batch
    double lost = 0;    ///< share of the time in next()
    double idle = 0;    ///< share of the workers' time
    double awake = 1;   ///< share of their busy time
  };
  enum class Move : std::uint8_t { kMore, kFewer, kDeeper };
  struct Attempt {
    Move move;
    int workers, times_deeper;  ///< where it began
    Window before = {};
  };
  /// How long a direction is left alone after it did not help, in windows.
  struct Patience {
    int wait = 0, next = kFirstPatience;
    void tried_in_vain() noexcept;
    void passed() noexcept { wait = wait > 0 ? wait - 1 : 0; }
  };
  static constexpr int kFirstPatience = 4;

  void begin_window() noexcept;
  [[nodiscard]] Window window(const WorkerTime& now) noexcept;
  [[nodiscard]] std::optional<Change> judge_attempt(const Window& window);
  [[nodiscard]] std::optional<Change> save_memory(const AskMemory& memory);
  [[nodiscard]] std::optional<Change> step(const Window& window, const AskMemory& memory);
  [[nodiscard]] std::optional<Change> more(const Window& window, const AskMemory& memory);
  [[nodiscard]] std::optional<Change> deeper(const Window& window, const AskMemory& memory);
  [[nodiscard]] std::optional<Change> fewer(const Window& window);
  [[nodiscard]] Patience& patience(Move move) noexcept;
  Change attempt(Move move, int workers, int times_deeper, std::string why);
  Change change(int workers, int times_deeper, std::string why);

  Limits limits_;
  int workers_ = 1;
  int times_deeper_ = 1;
  std::optional<Attempt> attempt_;
  Patience up_, down_, deep_;
  double steady_pace_s_ = 0;  ///< when the patience was last asked for
  int windows_to_look_ = 0;   ///< until memory is asked for again

  int settling_ = 0;  ///< batches that still show the count before
  int batches_ = 0;   ///< of this window
  bool running_ = false;
  bool begins_ = false;  ///< the workers' time until now belongs to no window
  Clock::time_point called_{}, returned_{};
  Clock::duration inside_{}, outside_{};
  Clock::duration last_step_{};  ///< of the trainer
  WorkerTime seen_;
};

}  // namespace infeed
