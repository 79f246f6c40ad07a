#pragma once
/// One rank's share of an epoch, as torch.utils.data.DistributedSampler.

#include <cstdint>
#include <memory>

#include "infeed/sampler/sampler.h"

namespace infeed {

class Permutation;
struct Shard;

struct DistributedSamplerOptions {
  std::int64_t rank = 0;        ///< This process among the trainers, in [0, world_size).
  std::int64_t world_size = 1;  ///< Trainers that share the data set.
  /// Shuffle each epoch, with generator.manual_seed(seed + epoch) on every rank. Default true. Costs 4 bytes a sample.
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< The same on all ranks.
  /// Leave out the samples that do not fill a round; otherwise the first of the order come again. Default false.
  bool drop_last = false;
};

/// Yields the indices of torch.utils.data.DistributedSampler, set_epoch included: all ranks make one order, and rank r
/// takes places r, r + world_size, ... Stands at the start of epoch 0 when made.
///
/// Resume: a state belongs to no rank. Every rank loads the same one (saved after the same number of indices on each),
/// also with another world_size: what the old ranks left of the epoch is dealt out to the new ones. That epoch is then
/// shorter than size() says.
class INFEED_API DistributedSampler final : public Sampler {
 public:
  /// Throws ConfigError for a negative size, world_size < 1, or a rank outside [0, world_size).
  explicit DistributedSampler(std::int64_t size, const DistributedSamplerOptions& options = {});
  ~DistributedSampler() override;

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
  bool shuffle_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;  // items taken of this shard
  bool shuffled_ = false;      // order_ is this epoch's
  std::unique_ptr<Permutation> order_;
};

}  // namespace infeed
