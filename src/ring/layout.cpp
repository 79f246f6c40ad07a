#include "ring/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr int kMaxSlots = 1 << 16;
constexpr int kMaxExtents = 1 << 24;

// The largest sum, 8 B * 2^31 rows * 2^16 slots and 448 B * 512 * 2^16, is below 2^52.
void check_ranges(const RingConfig& config) {
  const auto within = [](int value, int most) { return value >= 1 && value <= most; };
  if (within(config.num_slots, kMaxSlots) && config.max_rows >= 1 && within(config.max_claimants, kMaxClaimants) &&
      within(config.num_extents, kMaxExtents)) {
    return;
  }
  throw ConfigError(fmt::format(
      "a ring of {} slots (1 to {}), {} rows a batch (1 or more), {} worker threads (1 to {}) and {} extents (1 "
      "to {}) cannot be laid out.",
      config.num_slots, kMaxSlots, config.max_rows, config.max_claimants, kMaxClaimants, config.num_extents,
      kMaxExtents));
}

}  // namespace

RingLayout RingLayout::of(const RingConfig& config) {
  check_ranges(config);
  RingLayout layout;
  std::size_t end = sizeof(RingHeader);
  const auto place = [&end](std::size_t bytes, std::size_t count) {
    const std::size_t start = end;
    end = (start + bytes * count + 127) / 128 * 128;
    return start;
  };
  const auto slots = static_cast<std::size_t>(config.num_slots);
  const auto rows = static_cast<std::size_t>(config.max_rows);
  layout.max_rows = config.max_rows;
  layout.reports_per_slot = std::clamp(config.max_rows, 16, 512);
  layout.claimants = place(sizeof(ClaimantWords), static_cast<std::size_t>(config.max_claimants));
  layout.extents = place(sizeof(std::uint64_t), static_cast<std::size_t>(config.num_extents));
  layout.heads = place(sizeof(SlotHead), slots);
  layout.owners = place(sizeof(std::uint64_t) * kMaxRuns, slots);
  layout.indices = place(sizeof(std::int64_t) * rows, slots);
  layout.reports = place(sizeof(ReportRecord) * static_cast<std::size_t>(layout.reports_per_slot), slots);
  layout.traces = place(sizeof(TraceRecord) * kTraceRecords, static_cast<std::size_t>(config.max_claimants));
  layout.total = end;
  return layout;
}

}  // namespace infeed
