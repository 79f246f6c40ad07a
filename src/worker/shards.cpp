#include "worker/shards.h"

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {

OpenShard& ShardCache::at(const Stream& stream, std::uint64_t epoch, int shard, int num_shards, std::int64_t position) {
  if (epoch != epoch_ || num_shards != num_shards_) shards_.clear();
  epoch_ = epoch;
  num_shards_ = num_shards;
  OpenShard& open = find(shard);
  OpenShard moved = std::exchange(open, OpenShard{.shard = shard});  // a throw below leaves a closed one
  if (!moved.reader || moved.position > position) {
    moved = OpenShard{.shard = shard, .reader = stream.open(epoch, shard, num_shards)};
    if (!moved.reader) throw DataError("Stream::open returned no reader. Return one, or throw.");
  }
  if (!moved.ended && moved.position < position) {
    const std::int64_t wanted = position - moved.position;
    const std::int64_t passed = moved.reader->skip(wanted);
    moved.position += passed;
    moved.ended = passed < wanted;
  }
  open = std::move(moved);
  return open;
}

OpenShard& ShardCache::find(int shard) {
  const auto found = std::find_if(shards_.begin(), shards_.end(), [&](const OpenShard& s) { return s.shard == shard; });
  if (found != shards_.end()) return *found;
  return shards_.emplace_back(OpenShard{.shard = shard});
}

}  // namespace infeed
