#pragma once
/// A small ring in an arena, with verbs for tests.

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "memory/arena.h"
#include "ring/ring.h"

namespace infeed {

inline constexpr std::size_t kRigExtentBytes = std::size_t{2} << 20;

class RingRig : public ::testing::Test {
 protected:
  explicit RingRig(const RingConfig& config = {.num_slots = 4, .max_rows = 256, .max_claimants = 4, .num_extents = 4})
      : arena(Arena::create({.control_bytes = Ring::bytes(config),
                             .extent_bytes = kRigExtentBytes,
                             .num_extents = config.num_extents,
                             .min_extents = 1})),
        ring(Ring::format(arena.control(), config)) {}

  /// Indices 1000 * seq, 1000 * seq + 1, ...
  static std::vector<std::int64_t> indices_of(std::uint64_t seq, int rows) {
    std::vector<std::int64_t> indices(static_cast<std::size_t>(rows));
    std::iota(indices.begin(), indices.end(), static_cast<std::int64_t>(seq) * 1000);
    return indices;
  }

  /// The next batch, for any claimant, in an extent of the consumer.
  int arm(int rows) {
    const auto indices = indices_of(++seq, rows);
    return ring.arm(
        {.seq = seq, .epoch = 7, .number = seq - 1, .indices = indices, .rows = rows, .extent = ring.acquire_extent()});
  }
  /// The next batch as one run that binds its own extent.
  int arm_whole(int rows, int assigned = kAnyone) {
    const auto indices = indices_of(++seq, rows);
    return ring.arm(
        {.seq = seq, .number = seq - 1, .indices = indices, .rows = rows, .whole = true, .assigned = assigned});
  }
  /// Claims and publishes all there is; returns the rows.
  int fill(int claimant = 0) {
    int rows = 0;
    while (auto claim = ring.claim(claimant)) {
      rows += claim->rows;
      ring.publish(*claim, -1);
    }
    return rows;
  }

  Arena arena;
  Ring ring;
  std::uint64_t seq = 0;
};

}  // namespace infeed
