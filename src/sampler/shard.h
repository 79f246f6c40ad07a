#pragma once
/// One rank's share of a global order.

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace infeed {

/// The order's `size` places are dealt out in turn: item i of this rank is place base + i * world_size + rank. Without
/// drop_last the places past the end repeat the order from its front, so that every rank has as many.
///
/// A checkpoint keeps the first place that no rank has taken. It becomes `base` on resume, which is why another
/// world_size can deal out the rest.
struct Shard {
  std::int64_t size = 0;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  bool drop_last = false;
  std::int64_t base = 0;

  /// Throws ConfigError naming `sampler` unless 0 <= rank < world_size and the size is possible.
  void check(std::string_view sampler) const;

  /// Items of this rank from `base` on.
  [[nodiscard]] std::int64_t count() const noexcept {
    const std::int64_t left = std::max<std::int64_t>(size - base, 0);
    return left / world_size + (!drop_last && left % world_size != 0 ? 1 : 0);
  }
  /// The same share of a whole order.
  [[nodiscard]] Shard whole() const noexcept { return {size, rank, world_size, drop_last, 0}; }
  /// Place of item i, in [0, size).
  [[nodiscard]] std::int64_t place(std::int64_t i) const noexcept {
    const std::int64_t place = base + i * world_size + rank;
    return place < size ? place : place % size;
  }
  /// First place that no rank has taken after i items.
  [[nodiscard]] std::int64_t next_base(std::int64_t i) const noexcept { return base + i * world_size; }
  /// The largest that next_base can be in any sharding: padding ends one round after the last place.
  [[nodiscard]] static std::int64_t max_base(std::int64_t size) noexcept { return size + kMaxWorldSize; }

  static constexpr std::int64_t kMaxWorldSize = std::int64_t{1} << 31;
};

}  // namespace infeed
