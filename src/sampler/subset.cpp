#include "infeed/sampler/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/base/rng.h"
#include "sampler/checkpoint.h"
#include "sampler/permutation.h"

namespace infeed {
namespace {
constexpr std::string_view kType = "SubsetRandomSampler";
}

SubsetRandomSampler::SubsetRandomSampler(std::vector<std::int64_t> indices, std::uint64_t seed)
    : indices_(std::move(indices)),
      fingerprint_(fingerprint(std::as_bytes(std::span(indices_)))),
      seed_(seed),
      order_(std::make_unique<Permutation>(length())) {
  const auto negative = std::find_if(indices_.begin(), indices_.end(), [](std::int64_t index) { return index < 0; });
  if (negative != indices_.end())
    throw ConfigError(
        fmt::format("{}: indices[{}] is {}, it must not be negative.", kType, negative - indices_.begin(), *negative));
}

SubsetRandomSampler::~SubsetRandomSampler() = default;

void SubsetRandomSampler::start_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
  shuffled_ = false;
}

std::size_t SubsetRandomSampler::next(std::span<std::int64_t> indices) {
  const std::int64_t first = position_;
  const auto part = indices.first(static_cast<std::size_t>(skip(static_cast<std::int64_t>(indices.size()))));
  if (part.empty()) return 0;
  if (!shuffled_) {
    TorchGenerator generator(seed_ + epoch_);
    order_->shuffle(generator);
    shuffled_ = true;
  }
  order_->copy(first, part);
  for (std::int64_t& index : part) index = indices_[static_cast<std::size_t>(index)];
  return part.size();
}

std::int64_t SubsetRandomSampler::skip(std::int64_t count) {
  const std::int64_t step = std::clamp<std::int64_t>(count, 0, length() - position_);
  position_ += step;
  return step;
}

void SubsetRandomSampler::save(State& state) const {
  state.set("type", kType);
  state.set("size", length());
  state.set("indices", fingerprint_);
  state.set("seed", seed_);
  state.set("epoch", epoch_);
  state.set("position", position_);
}

void SubsetRandomSampler::load(const State& state) {
  const StateCheck check(state, kType);
  check.same("size", length());
  check.same("indices", fingerprint_);
  check.same("seed", seed_);
  const std::int64_t position = check.position("position", length());
  start_epoch(check.epoch());
  position_ = position;
}

}  // namespace infeed
