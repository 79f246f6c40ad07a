#pragma once
/// Shuffled, as torch.utils.data.RandomSampler.

#include <cstdint>
#include <memory>
#include <optional>

#include "infeed/base/rng.h"
#include "infeed/sampler/sampler.h"

namespace infeed {

class Permutation;

struct RandomSamplerOptions {
  /// The order of epoch e is torch's for generator.manual_seed(seed + e). Default 0.
  std::uint64_t seed = 0;
  /// Draw each index anew, so that some come twice and some never. Default false. Costs no memory.
  bool replacement = false;
  /// Indices per epoch; default: size. More than size without replacement: whole shuffles, one after the other.
  std::optional<std::int64_t> num_samples = std::nullopt;
};

/// Yields the order of torch.utils.data.RandomSampler(dataset, replacement, num_samples, generator) with
/// generator.manual_seed(seed + epoch). Stands at the start of epoch 0 when made.
///
/// Memory: 4 bytes per sample (8 above 2^31 samples), taken at the first index; none with replacement. Data sets too
/// large for that: FeistelSampler. Determinism: (seed + epoch) modulo 2^32 fixes the order, since torch's generator has
/// 32 bits of seed.
class INFEED_API RandomSampler final : public Sampler {
 public:
  /// Throws ConfigError for a negative size, num_samples < 1, and num_samples of an empty data set.
  explicit RandomSampler(std::int64_t size, const RandomSamplerOptions& options = {});
  ~RandomSampler() override;

  void start_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::size_t next(std::span<std::int64_t> indices) override;
  std::int64_t skip(std::int64_t count) override;  ///< Shuffles nothing; draws are passed over at 0.2 ns each.
  [[nodiscard]] std::optional<std::int64_t> size() const override { return num_samples_; }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  void draw(std::span<std::int64_t> indices);
  void shuffle(std::span<std::int64_t> indices);
  void make_pass(std::int64_t pass);

  std::int64_t size_;
  std::int64_t num_samples_;
  std::uint64_t seed_;
  bool replacement_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
  TorchGenerator generator_;
  std::int64_t passes_ = 0;             // shuffles that generator_ has drawn in this epoch
  std::unique_ptr<Permutation> order_;  // the last of them; meaningful when passes_ > 0
};

}  // namespace infeed
