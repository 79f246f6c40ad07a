#include "dataset/index_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"

namespace infeed {

IndexReader::IndexReader(const Dataset& dataset, std::int64_t shard, std::int64_t num_shards)
    : dataset_(&dataset), shard_(shard), num_shards_(num_shards) {
  if (num_shards < 1 || shard < 0 || shard >= num_shards)
    throw ConfigError(fmt::format("shard {} of {} was asked of a stream; shards count from 0.", shard, num_shards));
  const std::int64_t left = std::max<std::int64_t>(dataset.size() - shard, 0);
  size_ = left / num_shards + (left % num_shards != 0 ? 1 : 0);
}

bool IndexReader::next(Row& row) {
  if (position_ == size_) return false;
  SampleContext context = row.context();
  context.index = shard_ + position_ * num_shards_;
  ++position_;
  Row sample = row.with_context(context);
  dataset_->read(sample);
  return true;
}

std::int64_t IndexReader::skip(std::int64_t count) {
  const std::int64_t passed = std::clamp<std::int64_t>(count, 0, size_ - position_);
  position_ += passed;
  return passed;
}

}  // namespace infeed
