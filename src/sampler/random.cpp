#include "infeed/sampler/random.h"

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "sampler/checkpoint.h"
#include "sampler/permutation.h"

namespace infeed {
namespace {

constexpr std::string_view kType = "RandomSampler";

std::int64_t check_num_samples(std::int64_t size, std::optional<std::int64_t> num_samples) {
  check_size(kType, size);
  if (!num_samples) return size;
  if (*num_samples < 1)
    throw ConfigError(fmt::format("{}: num_samples is {}, it must be positive.", kType, *num_samples));
  if (size == 0)
    throw ConfigError(fmt::format("{}: {} samples cannot be drawn from an empty data set.", kType, *num_samples));
  return *num_samples;
}

}  // namespace

RandomSampler::RandomSampler(std::int64_t size, const RandomSamplerOptions& options)
    : size_(size),
      num_samples_(check_num_samples(size, options.num_samples)),
      seed_(options.seed),
      replacement_(options.replacement),
      generator_(options.seed),
      order_(std::make_unique<Permutation>(size)) {}

RandomSampler::~RandomSampler() = default;

void RandomSampler::start_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
  passes_ = 0;
  generator_.manual_seed(seed_ + epoch);
}

std::size_t RandomSampler::next(std::span<std::int64_t> indices) {
  const auto left = static_cast<std::size_t>(num_samples_ - position_);
  const auto part = indices.first(std::min(indices.size(), left));
  if (part.empty()) return 0;
  if (replacement_)
    draw(part);
  else
    shuffle(part);
  position_ += static_cast<std::int64_t>(part.size());
  return part.size();
}

void RandomSampler::draw(std::span<std::int64_t> indices) { generator_.randint(0, size_, indices); }

void RandomSampler::shuffle(std::span<std::int64_t> indices) {
  std::int64_t position = position_;
  while (!indices.empty()) {
    make_pass(position / size_);
    const std::int64_t place = position % size_;
    const auto part = indices.first(std::min(indices.size(), static_cast<std::size_t>(size_ - place)));
    order_->copy(place, part);
    position += static_cast<std::int64_t>(part.size());
    indices = indices.subspan(part.size());
  }
}

// The shuffles of an epoch follow each other on one generator; positions only grow, so those passed over are never
// needed again.
void RandomSampler::make_pass(std::int64_t pass) {
  if (passes_ == pass + 1) return;
  for (; passes_ < pass; ++passes_) generator_.discard_randperm(size_);
  order_->shuffle(generator_);
  ++passes_;
}

std::int64_t RandomSampler::skip(std::int64_t count) {
  const std::int64_t step = std::clamp<std::int64_t>(count, 0, num_samples_ - position_);
  if (replacement_ && step > 0) generator_.discard_randint(0, size_, static_cast<std::uint64_t>(step));
  position_ += step;
  return step;
}

void RandomSampler::save(State& state) const {
  state.set("type", kType);
  state.set("size", size_);
  state.set("num_samples", num_samples_);
  state.set("replacement", replacement_);
  state.set("seed", seed_);
  state.set("epoch", epoch_);
  state.set("position", position_);
}

void RandomSampler::load(const State& state) {
  const StateCheck check(state, kType);
  check.same("size", size_);
  check.same("num_samples", num_samples_);
  check.same("replacement", replacement_);
  check.same("seed", seed_);
  const std::int64_t position = check.position("position", num_samples_);
  start_epoch(check.epoch());
  static_cast<void>(skip(position));
}

}  // namespace infeed
