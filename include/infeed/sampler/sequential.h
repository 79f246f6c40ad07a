#pragma once
/// The order of the data set itself.

#include <cstdint>

#include "infeed/sampler/sampler.h"

namespace infeed {

/// Yields 0, 1, ..., size - 1 in every epoch. Stands at the start of epoch 0 when made.
class INFEED_API SequentialSampler final : public Sampler {
 public:
  /// Throws ConfigError for a negative size.
  explicit SequentialSampler(std::int64_t size);

  void start_epoch(std::uint64_t epoch) override;
  [[nodiscard]] std::size_t next(std::span<std::int64_t> indices) override;
  std::int64_t skip(std::int64_t count) override;
  [[nodiscard]] std::optional<std::int64_t> size() const override { return size_; }
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  std::int64_t size_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
};

}  // namespace infeed
