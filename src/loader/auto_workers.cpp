#include "loader/auto_workers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "worker/pool.h"

namespace infeed {
namespace {

constexpr int kFewestBatches = 16;                          // of a window
constexpr auto kShortest = std::chrono::milliseconds(500);  // a window: a process loses its processor for that long
constexpr int kFewBatches = 8;                              // of a long window: slow batches tell as much
constexpr auto kLong = std::chrono::seconds(2);
constexpr int kSettlingBatches = 4;      // and one more for each worker
constexpr double kLost = 0.05;           // of the time: worth a try
constexpr double kFed = 0.02;            // of the time: nothing to win
constexpr double kIdle = 0.5;            // of the workers' time
constexpr double kSomeIdle = 0.2;        // of it: bursts may be what the trainer waits for
constexpr double kGain = 0.03;           // of the pace: worth a worker
constexpr double kHarm = 0.02;           // of the pace
constexpr double kReserve = 1.3;         // more than the busy ones
constexpr double kOtherPipeline = 0.25;  // of the pace: what was learnt no longer holds
constexpr int kLongestPatience = 128;
constexpr int kMostToBegin = 4;
constexpr int kPause = 4;             // times the step before, and kShortest at least: the trainer saved, or evaluated
constexpr int kClaimantsForCpu = 8;   // where reads sleep,
constexpr int kFewestClaimants = 32;  // as those from a network do
constexpr int kWindowsBetweenLooks = 16;           // at memory
constexpr std::uint64_t kLeastOfWorker = 4 << 20;  // bytes: stack, buffers, tables

std::string percent(double share) { return fmt::format("{:.0f} %", share * 100); }

// Workers.
int room_for(const AutoWorkers::Memory& memory) noexcept {
  const auto one = static_cast<std::int64_t>(std::max(memory.worker, kLeastOfWorker));
  return static_cast<int>(std::clamp<std::int64_t>(memory.left / one, 0, kMaxWorkers));
}

}  // namespace

void AutoWorkers::Patience::tried_in_vain() noexcept {
  wait = next;
  next = std::min(2 * next, kLongestPatience);
}

int AutoWorkers::most_for(double usable_cpus, int threads) noexcept {
  const int claimants = std::max(kFewestClaimants, static_cast<int>(std::ceil(kClaimantsForCpu * usable_cpus)));
  return std::clamp(claimants / std::max(1, threads), 1, kMaxWorkers);
}

AutoWorkers::AutoWorkers(const Limits& limits) noexcept : limits_(limits) {
  if (limits_.most <= 0) limits_.most = most_for(limits_.usable_cpus, limits_.threads);
  const int half = static_cast<int>(limits_.usable_cpus / 2 / std::max(1, limits_.threads));
  workers_ = limits_.first > 0 ? std::min(limits_.first, limits_.most)
                               : std::clamp(half, 1, std::min(kMostToBegin, limits_.most));
  settling_ = kSettlingBatches + workers_;
}

void AutoWorkers::called(Clock::time_point now) noexcept {
  called_ = now;
  if (!running_) return;
  const Clock::duration before = std::exchange(last_step_, now - returned_);
  if (last_step_ > kShortest && last_step_ > kPause * before)
    interrupted();
  else
    outside_ += last_step_;
}

bool AutoWorkers::returned(bool with_batch, Clock::time_point now) noexcept {
  if (!with_batch) {
    interrupted();
    return false;
  }
  returned_ = now;
  if (settling_ > 0) {
    begins_ = --settling_ == 0;
    if (begins_) begin_window();
    running_ = true;
    return begins_;
  }
  if (running_) inside_ += now - called_;
  running_ = true;
  ++batches_;
  const Clock::duration seen = inside_ + outside_;
  return (batches_ >= kFewestBatches && seen >= kShortest) || (batches_ >= kFewBatches && seen >= kLong);
}

// Between epochs the trainer evaluates, saves, and the workers begin anew.
void AutoWorkers::interrupted() noexcept {
  begin_window();
  running_ = false;
  settling_ = std::max(settling_, kSettlingBatches);
}

void AutoWorkers::begin_window() noexcept {
  batches_ = 0;
  inside_ = outside_ = {};
}

AutoWorkers::Window AutoWorkers::window(const WorkerTime& now) noexcept {
  const auto seconds = [](Clock::duration time) { return std::chrono::duration<double>(time).count(); };
  const double all = seconds(inside_ + outside_);
  const auto busy = static_cast<double>(now.busy_ns - std::min(now.busy_ns, seen_.busy_ns));
  const auto idle = static_cast<double>(now.idle_ns - std::min(now.idle_ns, seen_.idle_ns));
  const auto awake = static_cast<double>(now.awake_ns - std::min(now.awake_ns, seen_.awake_ns));
  seen_ = now;
  const Window seen{.pace_s = all / batches_,
                    .lost = seconds(inside_) / all,
                    .idle = busy + idle > 0 ? idle / (busy + idle) : 0,
                    .awake = now.awake_ns > 0 && busy > 0 ? std::min(1.0, awake / busy) : 1};
  begin_window();
  return seen;
}

std::optional<AutoWorkers::Change> AutoWorkers::look(const WorkerTime& now, const AskMemory& memory) {
  if (std::exchange(begins_, false)) {
    seen_ = now;
    return std::nullopt;
  }
  const Window seen = window(now);
  if (memory && --windows_to_look_ <= 0) {
    windows_to_look_ = kWindowsBetweenLooks;
    if (auto fewer = save_memory(memory)) return fewer;
  }
  if (attempt_) {
    if (auto back = judge_attempt(seen)) return back;
  }
  for (Patience* patience : {&up_, &down_, &deep_}) patience->passed();
  return step(seen, memory);
}

std::optional<AutoWorkers::Change> AutoWorkers::save_memory(const AskMemory& memory) {
  const Memory now = memory();
  if (now.left >= 0 || (workers_ == 1 && times_deeper_ == 1)) return std::nullopt;
  attempt_.reset();
  const std::string why = fmt::format("memory is overdrawn by {:.0f} MB", -static_cast<double>(now.left) / 1e6);
  if (times_deeper_ > 1) {
    limits_.deepest = 1;
    return change(workers_, 1, why);
  }
  const double over = -static_cast<double>(now.left) / static_cast<double>(std::max(now.worker, kLeastOfWorker));
  limits_.most = std::max(1, workers_ - static_cast<int>(std::ceil(std::min(over, 64.0))));
  return change(limits_.most, 1,
                fmt::format("{}, a worker takes {:.0f} MB", why, static_cast<double>(now.worker) / 1e6));
}

AutoWorkers::Patience& AutoWorkers::patience(Move move) noexcept {
  return move == Move::kMore ? up_ : move == Move::kFewer ? down_ : deep_;
}

std::optional<AutoWorkers::Change> AutoWorkers::judge_attempt(const Window& window) {
  const Attempt tried = *std::exchange(attempt_, std::nullopt);
  const double faster = tried.before.pace_s / window.pace_s - 1;
  steady_pace_s_ = window.pace_s;
  if (faster >= (tried.move == Move::kFewer ? -kHarm : kGain)) {
    patience(tried.move) = {};
    return std::nullopt;
  }
  patience(tried.move).tried_in_vain();
  const std::string gain = percent(std::max(0.0, faster));
  switch (tried.move) {
    case Move::kMore:
      return change(tried.workers, tried.times_deeper,
                    fmt::format("{} workers made batches only {} faster", workers_, gain));
    case Move::kFewer:
      return change(tried.workers, tried.times_deeper,
                    fmt::format("{} made them {} slower", workers_, percent(-faster)));
    case Move::kDeeper: break;
  }
  return change(tried.workers, tried.times_deeper, fmt::format("the deeper queue made batches only {} faster", gain));
}

std::optional<AutoWorkers::Change> AutoWorkers::step(const Window& window, const AskMemory& memory) {
  if (steady_pace_s_ > 0 && std::abs(window.pace_s / steady_pace_s_ - 1) > kOtherPipeline) up_ = down_ = deep_ = {};
  steady_pace_s_ = window.pace_s;
  std::optional<Change> next = window.lost > kLost ? more(window, memory) : fewer(window);
  if (!next && window.lost > kLost) next = deeper(window, memory);
  if (next) attempt_->before = window;
  return next;
}

// Idle workers beside a waiting trainer are a matter of depth, or of the next() itself: more of them change nothing.
std::optional<AutoWorkers::Change> AutoWorkers::more(const Window& window, const AskMemory& memory) {
  if (up_.wait > 0 || workers_ >= limits_.most || window.idle > kIdle) return std::nullopt;
  const double needed = workers_ * (1 - window.idle) / std::max(0.01, 1 - window.lost);
  // Up to the processors at once; beyond them, where work that computes finds none, by doubling.
  const int processors = static_cast<int>(limits_.usable_cpus) / std::max(1, limits_.threads);
  const int count = std::clamp(static_cast<int>(std::ceil(std::min<double>(needed, kMaxWorkers))), workers_ + 1,
                               std::max({workers_ + 1, 2 * workers_, processors}));
  const int room = memory ? room_for(memory()) : limits_.most;
  if (room == 0) {
    up_.tried_in_vain();
    return std::nullopt;
  }
  windows_to_look_ = 0;  // at what they take
  std::string why = fmt::format("the trainer waited {} of the time, the workers were busy {}", percent(window.lost),
                                percent(1 - window.idle));
  if (workers_ + room < count) why += fmt::format("; memory has room for no more than {}", workers_ + room);
  return attempt(Move::kMore, std::min({count, workers_ + room, limits_.most}), times_deeper_, std::move(why));
}

// Some batches take long, and the ones behind them are ready: more of those in store bridge the gap.
std::optional<AutoWorkers::Change> AutoWorkers::deeper(const Window& window, const AskMemory& memory) {
  if (deep_.wait > 0 || 2 * times_deeper_ > limits_.deepest || window.idle < kSomeIdle) return std::nullopt;
  if (memory) {
    const Memory now = memory();
    if (now.left < static_cast<std::int64_t>(now.queue)) {
      deep_.tried_in_vain();
      return std::nullopt;
    }
  }
  windows_to_look_ = 0;
  return attempt(Move::kDeeper, workers_, 2 * times_deeper_,
                 fmt::format("the trainer waited {} of the time, the workers were idle {}", percent(window.lost),
                             percent(window.idle)));
}

std::optional<AutoWorkers::Change> AutoWorkers::fewer(const Window& window) {
  if (down_.wait > 0 || workers_ <= 1 || window.lost > kFed) return std::nullopt;
  if (window.idle > kIdle) {
    const int busy = static_cast<int>(std::ceil(workers_ * (1 - window.idle) * kReserve));
    return attempt(Move::kFewer, std::clamp(busy, 1, workers_ - 1), times_deeper_,
                   fmt::format("the trainer waited {} of the time, the workers were idle {}", percent(window.lost),
                               percent(window.idle)));
  }
  const bool one_can_go = workers_ * (1 - window.idle) <= workers_ - 1;
  if (!one_can_go || workers_ * limits_.threads * window.awake < limits_.usable_cpus) return std::nullopt;
  return attempt(Move::kFewer, workers_ - 1, times_deeper_,
                 fmt::format("{} workers leave the trainer none of {:.1f} CPUs", workers_, limits_.usable_cpus));
}

AutoWorkers::Change AutoWorkers::attempt(Move move, int workers, int times_deeper, std::string why) {
  attempt_ = Attempt{.move = move, .workers = workers_, .times_deeper = times_deeper_};
  return change(workers, times_deeper, std::move(why));
}

AutoWorkers::Change AutoWorkers::change(int workers, int times_deeper, std::string why) {
  workers_ = workers;
  times_deeper_ = times_deeper;
  settling_ = kSettlingBatches + workers;
  begin_window();
  return {workers, times_deeper, std::move(why)};
}

void AutoWorkers::refused(int workers) noexcept {
  workers_ = limits_.most = workers;
  attempt_.reset();
}

}  // namespace infeed
