#include <algorithm>
#include <bit>

#include "base/check.h"
#include "ring/owner.h"
#include "ring/ring.h"

// The consumer's side. What it ordered stands in `armed_`, its own memory; from shared memory it takes `done`, the
// extent, the result and the reports, and bounds each.

namespace infeed {
namespace {

std::uint64_t mask_of(int num_runs) { return num_runs == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << num_runs) - 1; }

}  // namespace

void Ring::check_order(const Order& order) const {
  INFEED_CHECK(order.seq > last_seq_ && order.seq <= kMaxSeq, "batch number {} follows {}", order.seq, last_seq_);
  INFEED_CHECK(order.rows >= 1 && order.rows <= config_.max_rows, "{} rows in a ring of at most {}", order.rows,
               config_.max_rows);
  INFEED_CHECK(order.indices.empty() || order.indices.size() == static_cast<std::size_t>(order.rows),
               "{} indices for {} rows", order.indices.size(), order.rows);
  INFEED_CHECK(order.extent < config_.num_extents && order.assigned < config_.max_claimants,
               "extent {} of {}, worker {} of {}", order.extent, config_.num_extents, order.assigned,
               config_.max_claimants);
  INFEED_CHECK(order.whole || (order.extent >= 0 && order.assigned < 0),
               "a batch for many workers needs an extent and no assignment");
}

int Ring::arm(const Order& order) {
  check_order(order);
  const auto free = std::find_if(armed_.begin(), armed_.end(), [](const Armed& a) { return a.seq == 0; });
  if (free == armed_.end()) return -1;
  const int slot = static_cast<int>(free - armed_.begin());
  const int fewest_rows = std::max(order.rows_per_run, (order.rows + kMaxRuns - 1) / kMaxRuns);
  const int rows_per_run = order.whole ? order.rows : std::min(fewest_rows, order.rows);
  const int num_runs = (order.rows + rows_per_run - 1) / rows_per_run;
  free->seq = order.seq;
  free->full = mask_of(num_runs);
  free->epoch = order.epoch;
  free->number = order.number;
  free->rows = order.rows;
  free->rows_per_run = rows_per_run;
  free->num_runs = num_runs;
  free->extent = std::max(order.extent, kNoExtent);
  free->assigned = std::max(order.assigned, kAnyone);
  free->whole = order.whole;
  free->draining = false;
  free->indices.assign(order.indices.begin(), order.indices.end());
  last_seq_ = order.seq;
  SlotHead& head = bytes_.head(slot);
  write_order(head, order, *free);
  std::copy(order.indices.begin(), order.indices.end(), bytes_.indices(slot));
  for (int run = 0; run < num_runs; ++run) {
    bytes_.owner(slot, run).store(offered_word(order.seq, free->assigned), std::memory_order_release);  // [offered]
  }
  head.todo.store(free->full, std::memory_order_relaxed);
  head.seq.store(order.seq, std::memory_order_release);  // [armed]
  return slot;
}

/// The slot is free: no claimant reads these but after a CAS on an owner word that names this batch.
void Ring::write_order(SlotHead& head, const Order& order, const Armed& armed) noexcept {
  head.done.store(0, std::memory_order_relaxed);
  head.draining.store(0, std::memory_order_relaxed);
  head.assigned.store(armed.assigned, std::memory_order_relaxed);
  head.extent.store(armed.extent, std::memory_order_relaxed);
  head.rows = armed.rows;
  head.rows_per_run = armed.rows_per_run;
  head.shard = order.shard;
  head.num_shards = order.num_shards;
  head.whole = armed.whole ? 1 : 0;
  head.full = armed.full;
  head.epoch = order.epoch;
  head.number = order.number;
  head.stream_row = order.first_row;
  head.nbytes = 0;
  head.rows_written = armed.whole ? 0 : armed.rows;
  head.shard_ended = 0;
  head.num_reports.store(0, std::memory_order_relaxed);
  head.has_indices = armed.indices.empty() ? 0 : 1;
}

bool Ring::ready(int slot) const noexcept {
  const std::uint64_t full = armed_[static_cast<std::size_t>(slot)].full;
  return full != 0 && (bytes_.head(slot).done.load(std::memory_order_seq_cst) & full) == full;  // pairs with [written]
}

SlotResult Ring::take(int slot) {
  Armed& armed = armed_[static_cast<std::size_t>(slot)];
  INFEED_CHECK(ready(slot), "slot {} with batch {} is not ready", slot, armed.seq);
  SlotHead& head = bytes_.head(slot);
  SlotResult result{.seq = armed.seq, .epoch = armed.epoch, .number = armed.number, .extent = take_extent(slot)};
  if (armed.whole) {
    result.rows = std::clamp(head.rows_written, 0, armed.rows);
    result.shard_ended = head.shard_ended != 0;
    result.nbytes = head.nbytes;
  } else {
    result.rows = armed.rows;
  }
  if (!armed.indices.empty()) result.indices.assign(bytes_.indices(slot), bytes_.indices(slot) + armed.rows);
  collect_reports(slot, result);
  head.seq.store(0, std::memory_order_relaxed);  // claimants that read the old one fail at their CAS
  armed.seq = 0;
  armed.full = 0;
  return result;
}

/// The extent is the consumer's from here on; a claimant's word is believed only if the extent's owner word names the
/// batch.
int Ring::take_extent(int slot) noexcept {
  const Armed& armed = armed_[static_cast<std::size_t>(slot)];
  if (armed.extent != kNoExtent) return armed.extent;
  const int extent = bytes_.head(slot).extent.load(std::memory_order_relaxed);
  if (extent < 0 || extent >= config_.num_extents) return kNoExtent;
  std::uint64_t word = bound_word(armed.seq);
  return bytes_.extent(extent).compare_exchange_strong(word, kExtentOfConsumer, std::memory_order_relaxed) ? extent
                                                                                                           : kNoExtent;
}

bool Ring::cancel(int slot) {
  Armed& armed = armed_[static_cast<std::size_t>(slot)];
  INFEED_CHECK(armed.seq != 0, "slot {} has no batch to cancel", slot);
  armed.draining = true;
  SlotHead& head = bytes_.head(slot);
  head.draining.store(armed.seq, std::memory_order_seq_cst);  // before the owner words: see return_run()
  head.todo.store(0, std::memory_order_relaxed);
  cancel_unstarted_runs(slot);
  return ready(slot);
}

/// A cancelled run counts as done, so that "drained" is the same predicate and the same ring as "ready".
void Ring::cancel_unstarted_runs(int slot) noexcept {
  const Armed& armed = armed_[static_cast<std::size_t>(slot)];
  for (int run = 0; run < armed.num_runs; ++run) {
    auto& owner = bytes_.owner(slot, run);
    std::uint64_t word = owner.load(std::memory_order_seq_cst);  // pairs with [offered] of return_run()
    while (is_unstarted(word, armed.seq)) {
      if (!owner.compare_exchange_weak(word, cancelled_word(armed.seq), std::memory_order_seq_cst)) continue;
      bytes_.head(slot).done.fetch_or(std::uint64_t{1} << run, std::memory_order_seq_cst);
      break;
    }
  }
}

int Ring::reassign(int from, int to) {
  int moved = 0;
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    Armed& armed = armed_[i];
    if (armed.seq == 0 || armed.draining || !armed.whole || armed.assigned != from) continue;
    std::uint64_t word = offered_word(armed.seq, from);
    const int slot = static_cast<int>(i);
    if (!bytes_.owner(slot, 0).compare_exchange_strong(word, offered_word(armed.seq, to), std::memory_order_release))
      continue;  // [offered]
    armed.assigned = std::max(to, kAnyone);
    bytes_.head(slot).assigned.store(armed.assigned, std::memory_order_relaxed);
    ++moved;
  }
  return moved;
}

int Ring::open_runs() const noexcept {
  int runs = 0;
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    if (armed_[i].seq == 0 || armed_[i].draining) continue;
    runs += std::popcount(bytes_.head(static_cast<int>(i)).todo.load(std::memory_order_relaxed) & armed_[i].full);
  }
  return runs;
}

}  // namespace infeed
