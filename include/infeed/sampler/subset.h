#pragma once
/// A shuffled subset, as torch.utils.data.SubsetRandomSampler.

#include <cstdint>
#include <memory>
#include <vector>

#include "infeed/sampler/sampler.h"

namespace infeed {

class Permutation;

/// Yields the given indices, each once, in the order of torch.utils.data.SubsetRandomSampler with
/// generator.manual_seed(seed + epoch). Stands at the start of epoch 0 when made.
///
/// Memory: the indices and 4 bytes for each. A state holds a fingerprint of the indices, not the indices.
class INFEED_API SubsetRandomSampler final : public Sampler {
 public:
  /// Throws ConfigError for a negative index.
  explicit SubsetRandomSampler(std::vector<std::int64_t> indices, std::uint64_t seed = 0);
  ~SubsetRandomSampler() override;

  void start_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::size_t next(std::span<std::int64_t> indices) override;
  std::int64_t skip(std::int64_t count) override;
  [[nodiscard]] std::optional<std::int64_t> size() const override { return length(); }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  [[nodiscard]] std::int64_t length() const noexcept { return static_cast<std::int64_t>(indices_.size()); }

  std::vector<std::int64_t> indices_;
  std::uint64_t fingerprint_;
  std::uint64_t seed_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
  bool shuffled_ = false;  // order_ is this epoch's
  std::unique_ptr<Permutation> order_;
};

}  // namespace infeed
