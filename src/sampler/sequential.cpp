#include "infeed/sampler/sequential.h"

#include <algorithm>
#include <numeric>

#include "sampler/checkpoint.h"

namespace infeed {
namespace {
constexpr std::string_view kType = "SequentialSampler";
}

SequentialSampler::SequentialSampler(std::int64_t size) : size_(size) { check_size(kType, size); }

void SequentialSampler::start_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
}

std::size_t SequentialSampler::next(std::span<std::int64_t> indices) {
  const std::int64_t first = position_;
  const std::int64_t count = skip(static_cast<std::int64_t>(indices.size()));
  std::iota(indices.begin(), indices.begin() + count, first);
  return static_cast<std::size_t>(count);
}

std::int64_t SequentialSampler::skip(std::int64_t count) {
  const std::int64_t step = std::clamp<std::int64_t>(count, 0, size_ - position_);
  position_ += step;
  return step;
}

void SequentialSampler::save(State& state) const {
  state.set("type", kType);
  state.set("size", size_);
  state.set("epoch", epoch_);
  state.set("position", position_);
}

void SequentialSampler::load(const State& state) {
  const StateCheck check(state, kType);
  check.same("size", size_);
  const std::int64_t position = check.position("position", size_);
  epoch_ = check.epoch();
  position_ = position;
}

}  // namespace infeed
