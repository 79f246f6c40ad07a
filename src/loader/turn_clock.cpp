#include "loader/turn_clock.h"

#include <algorithm>
#include <bit>

namespace infeed {
namespace {

double seconds(TurnClock::Duration time) { return std::chrono::duration<double>(time).count(); }

}  // namespace

void TurnClock::called(Clock::time_point now) noexcept {
  if (!started_) first_ = last_ = now;
  (inside_ ? inside_time_ : trainer_time_) += now - last_;
  started_ = inside_ = true;
  last_ = now;
  lost_now_ = {};
  waited_now_ = false;
}

void TurnClock::waited(Duration time) noexcept {
  waiting_since_ = {};
  if (!inside_) return;
  waited_ += time;
  lost_now_ += time;
  waited_now_ = true;
}

void TurnClock::sampled(Duration time) noexcept {
  if (!inside_) return;
  sampled_ += time;
  lost_now_ += time;
}

void TurnClock::returned(bool with_batch, Clock::time_point now) noexcept {
  if (!inside_) return;
  inside_time_ += now - last_;
  inside_ = false;
  last_ = now;
  waiting_since_ = {};
  if (!with_batch) return;
  waits_ += waited_now_ ? 1 : 0;
  longest_ = std::max(longest_, lost_now_);
  const auto ns = static_cast<std::uint64_t>(std::max<Duration::rep>(0, lost_now_.count()));
  Bin& bin = bins_[static_cast<std::size_t>(std::min(63, static_cast<int>(std::bit_width(ns))))];
  ++bin.turns;
  bin.lost_s += seconds(lost_now_);
}

// Of the time that next() lost, what was lost in the worst tenth of its turns.
double TurnClock::share_of_worst_tenth() const noexcept {
  std::uint64_t turns = 0;
  double all = 0;
  for (const Bin& bin : bins_) {
    turns += bin.turns;
    all += bin.lost_s;
  }
  const std::uint64_t tenth = (turns + 9) / 10;  // rounded up
  auto left = static_cast<double>(tenth);
  double worst = 0;
  for (auto bin = bins_.rbegin(); bin != bins_.rend() && left > 0; ++bin) {
    if (bin->turns == 0) continue;
    const double take = std::min(left, static_cast<double>(bin->turns));
    worst += bin->lost_s * take / static_cast<double>(bin->turns);
    left -= take;
  }
  return all > 0 ? worst / all : 0;
}

void TurnClock::fill(LoaderStats& stats, Clock::time_point now) const noexcept {
  const bool waiting = waiting_since_ != Clock::time_point{};
  const Duration going_on = waiting ? std::max(Duration{}, now - waiting_since_) : Duration{};
  const Duration inside = inside_time_ + (waiting ? now - last_ : Duration{});
  stats.elapsed_s = started_ ? seconds(inside + trainer_time_) : 0;
  stats.wait_s = seconds(waited_ + going_on);
  stats.sampler_s = seconds(sampled_);
  stats.trainer_s = seconds(trainer_time_);
  stats.hand_over_s = std::max(0.0, seconds(inside) - stats.wait_s - stats.sampler_s);
  stats.starved_share = stats.elapsed_s > 0 ? std::min(1.0, stats.wait_s / stats.elapsed_s) : 0;
  stats.waits = waits_;
  stats.longest_wait_ms = seconds(std::max(longest_, going_on)) * 1e3;
  stats.worst_tenth_share = share_of_worst_tenth();
}

}  // namespace infeed
