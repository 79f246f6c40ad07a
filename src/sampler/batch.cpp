#include "infeed/sampler/batch.h"

#include <fmt/format.h>

#include <utility>

#include "infeed/base/error.h"
#include "sampler/checkpoint.h"

namespace infeed {
namespace {

constexpr std::string_view kType = "FixedBatchSampler";

Sampler& check_sampler(const std::unique_ptr<Sampler>& sampler) {
  if (!sampler) throw ConfigError(fmt::format("{}: the sampler is null.", kType));
  return *sampler;
}

}  // namespace

FixedBatchSampler::FixedBatchSampler(Sampler& sampler, const FixedBatchOptions& options)
    : sampler_(&sampler), options_(options) {
  if (options.batch_size < 1)
    throw ConfigError(fmt::format("{}: batch_size is {}, it must be positive.", kType, options.batch_size));
}

FixedBatchSampler::FixedBatchSampler(std::unique_ptr<Sampler> sampler, const FixedBatchOptions& options)
    : FixedBatchSampler(check_sampler(sampler), options) {
  owned_ = std::move(sampler);
}

bool FixedBatchSampler::next(std::vector<std::int64_t>& indices) {
  indices.resize(static_cast<std::size_t>(options_.batch_size));
  const std::size_t count = sampler_->next(indices);
  const bool full = count == indices.size();
  indices.resize(full || !options_.drop_last ? count : 0);
  return !indices.empty();
}

std::optional<std::int64_t> FixedBatchSampler::size() const {
  const std::optional<std::int64_t> items = sampler_->size();
  if (!items) return std::nullopt;
  const bool short_batch = !options_.drop_last && *items % options_.batch_size != 0;
  return *items / options_.batch_size + (short_batch ? 1 : 0);
}

void FixedBatchSampler::save(State& state) const {
  State inner;
  sampler_->save(inner);
  state.set("type", kType);
  state.set("sampler", inner);
}

void FixedBatchSampler::load(const State& state) {
  static_cast<void>(StateCheck(state, kType));
  sampler_->load(state.get_state("sampler"));
}

}  // namespace infeed
