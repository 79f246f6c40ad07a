#include "infeed/sampler/distributed.h"

#include <algorithm>

#include "infeed/base/rng.h"
#include "sampler/checkpoint.h"
#include "sampler/permutation.h"
#include "sampler/shard.h"

namespace infeed {
namespace {
constexpr std::string_view kType = "DistributedSampler";
}

DistributedSampler::DistributedSampler(std::int64_t size, const DistributedSamplerOptions& options)
    : shard_(std::make_unique<Shard>(Shard{size, options.rank, options.world_size, options.drop_last})),
      shuffle_(options.shuffle),
      seed_(options.seed),
      order_(std::make_unique<Permutation>(size)) {
  shard_->check(kType);
}

DistributedSampler::~DistributedSampler() = default;

void DistributedSampler::start_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
  shuffled_ = false;
  shard_->base = 0;
}

std::size_t DistributedSampler::next(std::span<std::int64_t> indices) {
  const std::int64_t first = position_;
  const auto part = indices.first(static_cast<std::size_t>(skip(static_cast<std::int64_t>(indices.size()))));
  if (part.empty()) return 0;
  if (shuffle_ && !shuffled_) {
    TorchGenerator generator(seed_ + epoch_);
    order_->shuffle(generator);
    shuffled_ = true;
  }
  for (std::size_t i = 0; i < part.size(); ++i) {
    const std::int64_t place = shard_->place(first + static_cast<std::int64_t>(i));
    part[i] = shuffle_ ? (*order_)[place] : place;
  }
  return part.size();
}

std::int64_t DistributedSampler::skip(std::int64_t count) {
  const std::int64_t step = std::clamp<std::int64_t>(count, 0, shard_->count() - position_);
  position_ += step;
  return step;
}

std::optional<std::int64_t> DistributedSampler::size() const { return shard_->whole().count(); }

void DistributedSampler::save(State& state) const { (void)save_at(position_, state); }

bool DistributedSampler::save_at(std::int64_t position, State& state) const {
  state.set("type", kType);
  state.set("size", shard_->size);
  state.set("shuffle", shuffle_);
  state.set("seed", seed_);
  state.set("drop_last", shard_->drop_last);
  state.set("epoch", epoch_);
  state.set("global_position", shard_->next_base(position));
  return true;
}

void DistributedSampler::load(const State& state) {
  const StateCheck check(state, kType);
  check.same("size", shard_->size);
  check.same("shuffle", shuffle_);
  check.same("seed", seed_);
  check.same("drop_last", shard_->drop_last);
  const std::int64_t base = check.position("global_position", Shard::max_base(shard_->size));
  start_epoch(check.epoch());
  shard_->base = base;
}

}  // namespace infeed
