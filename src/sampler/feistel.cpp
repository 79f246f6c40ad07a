#include "infeed/sampler/feistel.h"

#include <algorithm>

#include "sampler/checkpoint.h"
#include "sampler/feistel_cipher.h"
#include "sampler/shard.h"

namespace infeed {
namespace {
constexpr std::string_view kType = "FeistelSampler";
}

FeistelSampler::FeistelSampler(std::int64_t size, const FeistelSamplerOptions& options)
    : shard_(std::make_unique<Shard>(Shard{size, options.rank, options.world_size, options.drop_last})),
      seed_(options.seed) {
  shard_->check(kType);
  start_epoch(0);
}

FeistelSampler::~FeistelSampler() = default;

void FeistelSampler::start_epoch(std::uint64_t epoch) {
  cipher_ = std::make_unique<FeistelCipher>(shard_->size, seed_, epoch);
  epoch_ = epoch;
  position_ = 0;
  shard_->base = 0;
}

std::size_t FeistelSampler::next(std::span<std::int64_t> indices) {
  const std::int64_t first = position_;
  const auto part = indices.first(static_cast<std::size_t>(skip(static_cast<std::int64_t>(indices.size()))));
  for (std::size_t i = 0; i < part.size(); ++i) part[i] = shard_->place(first + static_cast<std::int64_t>(i));
  cipher_->permute(part);
  return part.size();
}

std::int64_t FeistelSampler::skip(std::int64_t count) {
  const std::int64_t step = std::clamp<std::int64_t>(count, 0, shard_->count() - position_);
  position_ += step;
  return step;
}

std::optional<std::int64_t> FeistelSampler::size() const { return shard_->whole().count(); }

void FeistelSampler::save(State& state) const { (void)save_at(position_, state); }

bool FeistelSampler::save_at(std::int64_t position, State& state) const {
  state.set("type", kType);
  state.set("size", shard_->size);
  state.set("seed", seed_);
  state.set("drop_last", shard_->drop_last);
  state.set("epoch", epoch_);
  state.set("global_position", shard_->next_base(position));
  return true;
}

void FeistelSampler::load(const State& state) {
  const StateCheck check(state, kType);
  check.same("size", shard_->size);
  check.same("seed", seed_);
  check.same("drop_last", shard_->drop_last);
  const std::int64_t base = check.position("global_position", Shard::max_base(shard_->size));
  start_epoch(check.epoch());
  shard_->base = base;
}

}  // namespace infeed
