#pragma once
/// Indices in proportion to weights, as torch.utils.data.WeightedRandomSampler.

#include <cstdint>
#include <span>
#include <vector>

#include "infeed/base/rng.h"
#include "infeed/sampler/sampler.h"

namespace infeed {

struct WeightedRandomSamplerOptions {
  /// Whether an index may come twice in an epoch. Default true, as torch's.
  bool replacement = true;
  /// Epoch e draws as torch does for generator.manual_seed(seed + e). Default 0.
  std::uint64_t seed = 0;
};

/// Yields torch.multinomial(weights, num_samples, replacement), weights as float64: the order of
/// torch.utils.data.WeightedRandomSampler with generator.manual_seed(seed + epoch). Stands at the start of epoch 0 when
/// made. Unlike torch's it takes more than 2^24 weights.
///
/// Memory: 8 bytes per weight; without replacement 8 per index more, and 16 per weight while an epoch's order is made.
/// A state holds a fingerprint of the weights, not the weights.
class INFEED_API WeightedRandomSampler final : public Sampler {
 public:
  /// Throws ConfigError for num_samples < 1, for weights that are negative, not finite or all zero, and, without
  /// replacement, for num_samples above the number of positive weights.
  WeightedRandomSampler(std::vector<double> weights, std::int64_t num_samples,
                        const WeightedRandomSamplerOptions& options = {});

  void start_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::size_t next(std::span<std::int64_t> indices) override;
  std::int64_t skip(std::int64_t count) override;
  [[nodiscard]] std::optional<std::int64_t> size() const override { return num_samples_; }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  [[nodiscard]] bool independent() const noexcept { return replacement_ && num_samples_ > 1; }

  std::vector<double> table_;  // independent draws: the cumulative distribution; else the weights
  std::int64_t num_weights_;
  std::uint64_t fingerprint_;
  std::int64_t num_samples_;
  bool replacement_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
  TorchGenerator generator_;
  std::vector<std::int64_t> order_;  // dependent draws: this epoch's, empty until needed
};

}  // namespace infeed
