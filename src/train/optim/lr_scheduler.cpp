#include "infeed/train/optim/lr_scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "infeed/train/tensor/error.h"

namespace infeed::optim {
namespace {

void require_option(bool fits, const char* text, double value) {
  if (!fits) throw ConfigError(fmt::format("{}, but it is {}", text, value));
}

/// From `from` to `to` between two steps.
struct Phase {
  double end, from, to;
};

Schedule through(std::vector<Phase> phases, bool cosine, std::int64_t total_steps) {
  return [phases = std::move(phases), cosine, total_steps](double /*base*/, std::int64_t step) {
    if (step > total_steps)
      throw ValueError(
          fmt::format("Tried to step {} times. The specified number of total steps is {}", step, total_steps));
    double start = 0.0;
    std::size_t at = 0;
    for (; at + 1 < phases.size() && static_cast<double>(step) > phases[at].end; ++at) start = phases[at].end;
    const auto& [end, from, to] = phases[at];
    const double part = (static_cast<double>(step) - start) / (end - start);
    if (!cosine) return (to - from) * part + from;
    return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1.0);
  };
}

// high: at the top of the cycle; low: at its begin; last: at its end.
Schedule one_cycle(const OneCycleOptions& o, double low, double high, double last) {
  require_option(o.total_steps > 0, "OneCycleLR: total_steps should be positive", static_cast<double>(o.total_steps));
  require_option(o.pct_start >= 0.0 && o.pct_start <= 1.0, "OneCycleLR: pct_start should be in [0, 1]", o.pct_start);
  const double steps = static_cast<double>(o.total_steps), top = o.pct_start * steps - 1.0;
  if (o.three_phase)
    return through({{top, low, high}, {2.0 * o.pct_start * steps - 2.0, high, low}, {steps - 1.0, low, last}}, o.cosine,
                   o.total_steps);
  return through({{top, low, high}, {steps - 1.0, high, last}}, o.cosine, o.total_steps);
}

double power(double gamma, std::int64_t times) { return std::pow(gamma, static_cast<double>(times)); }

}  // namespace

Schedule constant_lr(double factor, std::int64_t total_iters) {
  require_option(factor >= 0.0 && factor <= 1.0, "ConstantLR: factor should be in [0, 1]", factor);
  return [=](double base, std::int64_t epoch) { return epoch < total_iters ? base * factor : base; };
}

Schedule linear_lr(double start_factor, double end_factor, std::int64_t total_iters) {
  require_option(start_factor > 0.0 && start_factor <= 1.0, "LinearLR: start_factor should be in (0, 1]", start_factor);
  require_option(end_factor >= 0.0 && end_factor <= 1.0, "LinearLR: end_factor should be in [0, 1]", end_factor);
  return [=](double base, std::int64_t epoch) {
    const double part = static_cast<double>(std::min(total_iters, epoch)) / static_cast<double>(total_iters);
    return base * (start_factor + (end_factor - start_factor) * part);
  };
}

Schedule step_lr(std::int64_t step_size, double gamma) {
  require_option(step_size > 0, "StepLR: step_size should be positive", static_cast<double>(step_size));
  return [=](double base, std::int64_t epoch) { return base * power(gamma, epoch / step_size); };
}

Schedule multi_step_lr(std::vector<std::int64_t> milestones, double gamma) {
  std::sort(milestones.begin(), milestones.end());
  return [=, milestones = std::move(milestones)](double base, std::int64_t epoch) {
    return base * power(gamma, std::upper_bound(milestones.begin(), milestones.end(), epoch) - milestones.begin());
  };
}

Schedule exponential_lr(double gamma) {
  return [=](double base, std::int64_t epoch) { return base * power(gamma, epoch); };
}

Schedule cosine_annealing_lr(std::int64_t t_max, double eta_min) {
  require_option(t_max > 0, "CosineAnnealingLR: t_max should be positive", static_cast<double>(t_max));
  return [=](double base, std::int64_t epoch) {
    const double angle = std::numbers::pi * static_cast<double>(epoch) / static_cast<double>(t_max);
    return eta_min + (base - eta_min) * (1.0 + std::cos(angle)) / 2.0;
  };
}

Schedule sequential_lr(std::vector<Schedule> schedules, std::vector<std::int64_t> milestones) {
  if (schedules.size() != milestones.size() + 1 || !std::is_sorted(milestones.begin(), milestones.end()))
    throw ConfigError(fmt::format("SequentialLR: {} schedules need {} milestones in rising order, but there are {}",
                                  schedules.size(), schedules.empty() ? 0 : schedules.size() - 1, milestones.size()));
  return [schedules = std::move(schedules), milestones = std::move(milestones)](double base, std::int64_t epoch) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), epoch) - milestones.begin();
    const std::int64_t begin = passed == 0 ? 0 : milestones[static_cast<std::size_t>(passed - 1)];
    return schedules[static_cast<std::size_t>(passed)](base, epoch - begin);
  };
}

Schedule one_cycle_lr(const OneCycleOptions& o) {
  const double first = o.max_lr / o.div_factor;
  return one_cycle(o, first, o.max_lr, first / o.final_div_factor);
}
Schedule one_cycle_momentum(const OneCycleOptions& o) {
  return one_cycle(o, o.max_momentum, o.base_momentum, o.max_momentum);
}

// ---- LRScheduler ----

LRScheduler::LRScheduler(Optimizer& optimizer, Schedule rate, Schedule momentum)
    : optimizer_(optimizer), rate_(std::move(rate)), momentum_(std::move(momentum)) {
  bases_ = get_last_lr();
  apply();
}

std::vector<double> LRScheduler::get_last_lr() const {
  std::vector<double> rates;
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group)
    rates.push_back(*optimizer_.option(group, "lr"));
  return rates;
}

void LRScheduler::step() {
  ++epoch_;
  apply();
}

void LRScheduler::apply() {
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) {
    double& rate = *optimizer_.option(group, "lr");
    if (group == bases_.size()) bases_.push_back(rate);  // a group that was added since
    rate = rate_(bases_[group], epoch_);
    double* momentum = optimizer_.option(group, "momentum");
    if (momentum == nullptr) momentum = optimizer_.option(group, "beta1");
    if (momentum_ && momentum != nullptr) *momentum = momentum_(*momentum, epoch_);
  }
}

State LRScheduler::state_dict() const {
  State state, bases;
  for (std::size_t group = 0; group < bases_.size(); ++group) bases.set(std::to_string(group), bases_[group]);
  state.set("last_epoch", epoch_);
  state.set("base_lrs", bases);
  return state;
}

void LRScheduler::load_state_dict(const State& state) {
  const State bases = state.get_state("base_lrs");
  if (bases.keys().size() != bases_.size())
    throw StateError(
        fmt::format("this schedule is of {} groups, the saved one of {}.", bases_.size(), bases.keys().size()));
  for (std::size_t group = 0; group < bases_.size(); ++group) bases_[group] = bases.get_double(std::to_string(group));
  epoch_ = state.get_int("last_epoch");
  apply();
}

// ---- ReduceLROnPlateau ----

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const PlateauOptions& options)
    : optimizer_(optimizer),
      options_(options),
      best_((options.maximize ? -1 : 1) * std::numeric_limits<double>::infinity()) {
  require_option(options.factor < 1.0, "ReduceLROnPlateau: factor should be below 1", options.factor);
}

bool ReduceLROnPlateau::is_better(double metric) const noexcept {
  const double sign = options_.maximize ? 1.0 : -1.0, threshold = options_.threshold;
  const double bar = options_.relative ? best_ * (1.0 + sign * threshold) : best_ + sign * threshold;
  return options_.maximize ? metric > bar : metric < bar;
}

void ReduceLROnPlateau::step(double metric) {
  if (is_better(metric)) {
    best_ = metric;
    num_bad_epochs_ = 0;
  } else {
    ++num_bad_epochs_;
  }
  if (cooldown_counter_ > 0) {
    --cooldown_counter_;
    num_bad_epochs_ = 0;
  }
  if (num_bad_epochs_ <= options_.patience) return;
  for (std::size_t group = 0; group < optimizer_.num_groups(); ++group) {
    double& rate = *optimizer_.option(group, "lr");
    const double lower = std::max(rate * options_.factor, options_.min_lr);
    if (rate - lower > options_.eps) rate = lower;
  }
  cooldown_counter_ = options_.cooldown;
  num_bad_epochs_ = 0;
}

State ReduceLROnPlateau::state_dict() const {
  State state;
  if (std::isfinite(best_)) state.set("best", best_);  // JSON knows no infinity
  state.set("num_bad_epochs", num_bad_epochs_);
  state.set("cooldown_counter", cooldown_counter_);
  return state;
}

void ReduceLROnPlateau::load_state_dict(const State& state) {
  if (state.contains("best")) best_ = state.get_double("best");
  num_bad_epochs_ = state.get_int("num_bad_epochs");
  cooldown_counter_ = state.get_int("cooldown_counter");
}

}  // namespace infeed::optim
