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
constexpr double kGain = 0.03;           // of the pace: worth a worker
constexpr double kHarm = 0.02;           // of the pace
constexpr double kReserve = 1.3;         // more than the busy ones
constexpr double kOtherPipeline = 0.25;  // of the pace: what was learnt no longer holds
constexpr int kLongestPatience = 128;
constexpr int kMostToBegin = 4;
constexpr int kClaimantsForCpu = 8;                // where reads sleep,
constexpr int kFewestClaimants = 32;               // as those from a network do
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
  if (running_) outside_ += now - returned_;
  called_ = now;
}

bool AutoWorkers::returned(bool with_batch, Clock::time_point now) noexcept {
  if (!with_batch) {  // between epochs the trainer evaluates, saves, and the workers begin anew
    begin_window();
    running_ = false;
    settling_ = std::max(settling_, kSettlingBatches);
    return false;
  }
  returned_ = now;
  if (settling_ > 0) {
    if (--settling_ == 0) begin_window();
    running_ = true;
    return false;
  }
  if (running_) inside_ += now - called_;
  running_ = true;
  ++batches_;
  const Clock::duration seen = inside_ + outside_;
  return (batches_ >= kFewestBatches && seen >= kShortest) || (batches_ >= kFewBatches && seen >= kLong);
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
  const Window seen = window(now);
  if (memory && --windows_to_look_ <= 0) {
    windows_to_look_ = kWindowsBetweenLooks;
    if (auto fewer = save_memory(memory)) return fewer;
  }
  if (attempt_) {
    if (auto back = judge_attempt(seen)) return back;
  }
  up_.passed();
  down_.passed();
  return step(seen, memory);
}

std::optional<AutoWorkers::Change> AutoWorkers::save_memory(const AskMemory& memory) {
  const Memory now = memory();
  if (now.left >= 0 || workers_ == 1) return std::nullopt;
  const double over = -static_cast<double>(now.left) / static_cast<double>(std::max(now.worker, kLeastOfWorker));
  limits_.most = std::max(1, workers_ - static_cast<int>(std::ceil(std::min(over, 64.0))));
  Change fewer =
      change(limits_.most, fmt::format("memory is overdrawn by {:.0f} MB, a worker takes {:.0f} MB",
                                       -static_cast<double>(now.left) / 1e6, static_cast<double>(now.worker) / 1e6));
  attempt_.reset();
  return fewer;
}

std::optional<AutoWorkers::Change> AutoWorkers::judge_attempt(const Window& window) {
  const Attempt attempt = *std::exchange(attempt_, std::nullopt);
  const double faster = attempt.before.pace_s / window.pace_s - 1;
  const bool added = workers_ > attempt.from;
  Patience& patience = added ? up_ : down_;
  steady_pace_s_ = window.pace_s;
  if (added ? faster >= kGain : faster >= -kHarm) {
    patience = {};
    return std::nullopt;
  }
  patience.tried_in_vain();
  const std::string what =
      added ? fmt::format("{} workers made batches only {} faster", workers_, percent(std::max(0.0, faster)))
            : fmt::format("{} made them {} slower", workers_, percent(-faster));
  Change back = change(attempt.from, what);
  attempt_.reset();
  return back;
}

std::optional<AutoWorkers::Change> AutoWorkers::step(const Window& window, const AskMemory& memory) {
  if (steady_pace_s_ > 0 && std::abs(window.pace_s / steady_pace_s_ - 1) > kOtherPipeline) up_ = down_ = {};
  steady_pace_s_ = window.pace_s;
  std::optional<Change> next = window.lost > kLost ? more(window, memory) : fewer(window);
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
  return change(std::min({count, workers_ + room, limits_.most}), std::move(why));
}

std::optional<AutoWorkers::Change> AutoWorkers::fewer(const Window& window) {
  if (down_.wait > 0 || workers_ <= 1 || window.lost > kFed) return std::nullopt;
  if (window.idle > kIdle) {
    const int busy = static_cast<int>(std::ceil(workers_ * (1 - window.idle) * kReserve));
    return change(std::clamp(busy, 1, workers_ - 1),
                  fmt::format("the trainer waited {} of the time, the workers were idle {}", percent(window.lost),
                              percent(window.idle)));
  }
  if (workers_ * limits_.threads * window.awake < limits_.usable_cpus) return std::nullopt;
  return change(workers_ - 1,
                fmt::format("{} workers leave the trainer none of {:.1f} CPUs", workers_, limits_.usable_cpus));
}

AutoWorkers::Change AutoWorkers::change(int workers, std::string why) {
  attempt_ = Attempt{.from = workers_};
  workers_ = workers;
  settling_ = kSettlingBatches + workers;
  begin_window();
  return {workers, std::move(why)};
}

void AutoWorkers::refused(int workers) noexcept {
  workers_ = limits_.most = workers;
  attempt_.reset();
}

}  // namespace infeed
