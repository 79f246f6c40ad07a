#pragma once
/// Shuffled in constant memory: for data sets of any size.

#include <cstdint>
#include <memory>

#include "infeed/sampler/sampler.h"

namespace infeed {

class FeistelCipher;
struct Shard;

struct FeistelSamplerOptions {
  std::uint64_t seed = 0;       ///< With the epoch, the key of the permutation; the same on all ranks.
  std::int64_t rank = 0;        ///< This process among the trainers, in [0, world_size).
  std::int64_t world_size = 1;  ///< Trainers that share the data set.
  /// Leave out the samples that do not fill a round; otherwise the first of the order come again. Default false.
  bool drop_last = false;
};

/// Yields a keyed permutation of [0, size), computed index by index: no memory grows with the data set, and any
/// position is reached at once. The order is not torch's; it is as good as a shuffle for training, not for
/// cryptography.
///
/// Determinism: seed and epoch fix the order on every machine. Rank r takes places r, r + world_size, ... of it.
/// Resume: as DistributedSampler, also with another world_size. Stands at the start of epoch 0 when made.
class INFEED_API FeistelSampler final : public Sampler {
 public:
  /// Throws ConfigError for a negative size, world_size < 1, or a rank outside [0, world_size).
  explicit FeistelSampler(std::int64_t size, const FeistelSamplerOptions& options = {});
  ~FeistelSampler() override;

  void start_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::size_t next(std::span<std::int64_t> indices) override;
  std::int64_t skip(std::int64_t count) override;
  /// Of a whole epoch, on this rank.
  [[nodiscard]] std::optional<std::int64_t> size() const override;
  void save(State& state) const override;
  [[nodiscard]] bool save_at(std::int64_t position, State& state) const override;
  void load(const State& state) override;

 private:
  std::unique_ptr<Shard> shard_;
  std::unique_ptr<FeistelCipher> cipher_;  // of this epoch
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;  // items taken of this shard
};

}  // namespace infeed
