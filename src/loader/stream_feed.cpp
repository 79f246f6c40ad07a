#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "loader/feed.h"

namespace infeed {

StreamFeed::StreamFeed(int num_shards, std::int64_t batch_size, bool drop_last, std::optional<std::int64_t> stream_size)
    : shards_(static_cast<std::size_t>(num_shards)),
      batch_size_(batch_size),
      drop_last_(drop_last),
      stream_size_(stream_size) {}

void StreamFeed::start_epoch(std::uint64_t /*epoch*/) {
  std::fill(shards_.begin(), shards_.end(), Shard{});
  next_number_ = 0;
  turn_ = delivered_turn_ = 0;
}

bool StreamFeed::next(Work& work) {
  for (std::size_t tried = 0; tried < shards_.size(); ++tried) {
    const std::size_t index = turn_;
    turn_ = (turn_ + 1) % shards_.size();
    Shard& shard = shards_[index];
    if (shard.ended) continue;
    work.number = next_number_++;
    work.indices.clear();
    work.rows = static_cast<int>(batch_size_);
    work.shard = static_cast<int>(index);
    work.begin = shard.armed;
    shard.armed += batch_size_;
    return true;
  }
  return false;
}

void StreamFeed::taken(const Work& work, bool shard_ended) {
  Shard& shard = shards_[static_cast<std::size_t>(work.shard)];
  if (!shard_ended || shard.ended) return;
  shard.ended = true;
  shard.last = work.begin;
  shard.barren = 0;  // those in flight are not counted again
}

int StreamFeed::barren(const Work& work, bool any_good) {
  int& batches = shards_[static_cast<std::size_t>(work.shard)].barren;
  batches = any_good ? 0 : batches + 1;
  return batches;
}

void StreamFeed::delivered(const Work& work, int rows) {
  Shard& shard = shards_[static_cast<std::size_t>(work.shard)];
  // A batch uses up all rows that it asked for, also where faulty ones make it short.
  shard.delivered = std::max(shard.delivered, work.begin + rows);
  if (shard.ended && work.begin >= shard.last) shard.done = true;
  delivered_turn_ = (static_cast<std::size_t>(work.shard) + 1) % shards_.size();
}

std::optional<std::int64_t> StreamFeed::size() const {
  // How a stream's samples fall on its shards is the stream's own business: with one shard it is known.
  if (!stream_size_ || shards_.size() != 1) return std::nullopt;
  return drop_last_ ? *stream_size_ / batch_size_ : (*stream_size_ + batch_size_ - 1) / batch_size_;
}

void StreamFeed::save(State& state) const {
  state.set("kind", "stream");
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> done;
  for (const Shard& shard : shards_) {
    rows.push_back(shard.delivered);
    done.push_back(shard.done ? 1 : 0);
  }
  state.set("shard_rows", rows);
  state.set("shard_done", done);
  state.set("turn", static_cast<std::int64_t>(delivered_turn_));
}

void StreamFeed::load(const State& state) {
  if (state.get_string("kind") != "stream")
    throw StateError("the state is of a loader over a map-style dataset: load it there.");
  const auto rows = state.get_ints("shard_rows");
  const auto done = state.get_ints("shard_done");
  if (rows.size() != shards_.size() || done.size() != shards_.size())
    throw StateError(
        fmt::format("the state is of a stream in {} shards, this loader reads {}. Set stream_shards to {}.",
                    rows.size(), shards_.size(), rows.size()));
  const std::int64_t turn = state.get_int("turn");
  if (turn < 0 || static_cast<std::size_t>(turn) >= shards_.size())
    throw StateError(fmt::format("the state's turn {} names no shard.", turn));
  for (std::size_t i = 0; i < shards_.size(); ++i) {
    constexpr std::int64_t kLargest = std::int64_t{1} << 53;
    if (rows[i] < 0 || rows[i] > kLargest)
      throw StateError(fmt::format("the state has {} rows for shard {}.", rows[i], i));
    shards_[i] = Shard{.armed = rows[i], .delivered = rows[i], .ended = done[i] != 0, .done = done[i] != 0};
  }
  turn_ = delivered_turn_ = static_cast<std::size_t>(turn);
  next_number_ = 0;
}

}  // namespace infeed
