#include "infeed/sampler/weighted.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/multinomial.h"
#include "infeed/base/error.h"
#include "sampler/checkpoint.h"

namespace infeed {
namespace {
constexpr std::string_view kType = "WeightedRandomSampler";
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, std::int64_t num_samples,
                                             const WeightedRandomSamplerOptions& options)
    : table_(std::move(weights)),
      num_weights_(static_cast<std::int64_t>(table_.size())),
      fingerprint_(fingerprint(std::as_bytes(std::span(table_)))),
      num_samples_(num_samples),
      replacement_(options.replacement),
      seed_(options.seed),
      generator_(options.seed) {
  if (num_samples < 1)
    throw ConfigError(fmt::format("{}: num_samples is {}, it must be positive.", kType, num_samples));
  const std::int64_t positive = check_weights(table_);
  if (!replacement_ && num_samples > positive)
    throw ConfigError(
        fmt::format("{}: {} samples without replacement, but only {} of {} weights are positive. Lower "
                    "num_samples or set replacement.",
                    kType, num_samples, positive, num_weights_));
  if (independent()) table_ = cumulative_distribution(table_);
}

void WeightedRandomSampler::start_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
  order_.clear();
  generator_.manual_seed(seed_ + epoch);
}

std::size_t WeightedRandomSampler::next(std::span<std::int64_t> indices) {
  const auto part = indices.first(std::min(indices.size(), static_cast<std::size_t>(num_samples_ - position_)));
  if (part.empty()) return 0;
  if (independent()) {
    for (std::int64_t& index : part) index = find_category(table_, generator_.uniform_double());
  } else {
    if (order_.empty()) order_ = generator_.multinomial(table_, num_samples_, replacement_);
    std::copy_n(order_.begin() + position_, part.size(), part.begin());
  }
  position_ += static_cast<std::int64_t>(part.size());
  return part.size();
}

std::int64_t WeightedRandomSampler::skip(std::int64_t count) {
  const std::int64_t step = std::clamp<std::int64_t>(count, 0, num_samples_ - position_);
  if (independent()) generator_.discard(2 * static_cast<std::uint64_t>(step));  // 64 bits a draw
  position_ += step;
  return step;
}

void WeightedRandomSampler::save(State& state) const {
  state.set("type", kType);
  state.set("size", num_weights_);
  state.set("weights", fingerprint_);
  state.set("num_samples", num_samples_);
  state.set("replacement", replacement_);
  state.set("seed", seed_);
  state.set("epoch", epoch_);
  state.set("position", position_);
}

void WeightedRandomSampler::load(const State& state) {
  const StateCheck check(state, kType);
  check.same("size", num_weights_);
  check.same("weights", fingerprint_);
  check.same("num_samples", num_samples_);
  check.same("replacement", replacement_);
  check.same("seed", seed_);
  const std::int64_t position = check.position("position", num_samples_);
  start_epoch(check.epoch());
  static_cast<void>(skip(position));
}

}  // namespace infeed
