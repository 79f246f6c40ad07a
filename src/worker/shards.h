#pragma once
/// The readers that a claimant keeps open between batches of a stream.

#include <cstdint>
#include <memory>
#include <vector>

#include "infeed/dataset/dataset.h"

namespace infeed {

struct OpenShard {
  int shard = 0;
  std::unique_ptr<StreamReader> reader;
  std::int64_t position = 0;  ///< samples passed, those that raised included
  bool ended = false;
};

/// One claimant's. Holds readers of the latest epoch only.
class ShardCache {
 public:
  /// Reader of `shard`, moved to sample `position`: kept from the batch before, or opened anew and skipped forward.
  /// Throws what the stream throws; the shard is then not kept.
  OpenShard& at(const Stream& stream, std::uint64_t epoch, int shard, int num_shards, std::int64_t position);

 private:
  [[nodiscard]] OpenShard& find(int shard);

  std::vector<OpenShard> shards_;
  std::uint64_t epoch_ = 0;
  int num_shards_ = 0;
};

}  // namespace infeed
