#pragma once
/// A Dataset read front to back.

#include <memory>

#include "infeed/dataset/dataset.h"

namespace infeed {

/// Shard s of n holds the indices s, s + n, ... Randomness is the dataset's own: it is keyed by the index in the
/// dataset.
class INFEED_API DatasetStream final : public Stream {
 public:
  /// Throws ConfigError on null.
  explicit DatasetStream(std::shared_ptr<const Dataset> dataset);

  [[nodiscard]] const Schema& schema() const override { return dataset_->schema(); }
  [[nodiscard]] std::unique_ptr<StreamReader> open(std::uint64_t epoch, std::int64_t shard,
                                                   std::int64_t num_shards) const override;
  [[nodiscard]] std::optional<std::int64_t> size() const override { return dataset_->size(); }
  /// nullopt where the dataset has none.
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
};

}  // namespace infeed
