#pragma once
/// Batches of one size from any Sampler.

#include <cstdint>
#include <memory>

#include "infeed/sampler/sampler.h"

namespace infeed {

struct FixedBatchOptions {
  std::int64_t batch_size = 1;  ///< Indices per batch. Default 1.
  bool drop_last = false;       ///< Leave out a last batch that is not full. Default false.
};

/// Yields batches as torch.utils.data.BatchSampler does.
///
/// Resume: the state is the sampler's, so that a run may go on with another batch_size.
class INFEED_API FixedBatchSampler final : public BatchSampler {
 public:
  /// Borrows `sampler`, which must outlive this. Throws ConfigError for batch_size < 1.
  FixedBatchSampler(Sampler& sampler, const FixedBatchOptions& options);
  /// Owns `sampler`; throws ConfigError where it is null.
  FixedBatchSampler(std::unique_ptr<Sampler> sampler, const FixedBatchOptions& options);

  void start_epoch(std::uint64_t epoch) override { sampler_->start_epoch(epoch); }
  [[nodiscard]] bool next(std::vector<std::int64_t>& indices) override;
  [[nodiscard]] std::int64_t max_batch_size() const override { return options_.batch_size; }
  [[nodiscard]] std::optional<std::int64_t> size() const override;
  void save(State& state) const override;
  void load(const State& state) override;

 private:
  std::unique_ptr<Sampler> owned_;
  Sampler* sampler_;  // owned_ or the caller's
  FixedBatchOptions options_;
};

}  // namespace infeed
