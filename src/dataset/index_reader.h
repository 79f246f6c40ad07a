#pragma once
/// A shard of a dataset, front to back.

#include "infeed/dataset/dataset.h"

namespace infeed {

/// Indices shard, shard + num_shards, ... of a dataset that outlives the reader. One owner, one thread.
class IndexReader final : public StreamReader {
 public:
  /// Throws ConfigError unless 0 <= shard < num_shards.
  IndexReader(const Dataset& dataset, std::int64_t shard, std::int64_t num_shards);

  /// A sample that cannot be read is passed over by the next call.
  bool next(Row& row) override;
  std::int64_t skip(std::int64_t count) override;

 private:
  const Dataset* dataset_;
  std::int64_t shard_;
  std::int64_t num_shards_;
  std::int64_t size_;          ///< samples in this shard
  std::int64_t position_ = 0;  ///< in [0, size_]
};

}  // namespace infeed
