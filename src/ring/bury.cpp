#include <algorithm>

#include "ring/doorbell.h"
#include "ring/owner.h"
#include "ring/ring.h"

// After a death. Only for a claimant that takes no further step: a live one would write into memory that is lent again.

namespace infeed {

int Ring::bury(int claimant) {
  int runs = 0;
  for (std::size_t i = 0; i < armed_.size(); ++i) {
    if (armed_[i].seq == 0) continue;
    const int slot = static_cast<int>(i);
    runs += bury_in(slot, claimant);
    // It may have died between giving a run back and seeing that the slot drains.
    if (armed_[i].draining) cancel_unstarted_runs(slot);
  }
  Doorbell(bytes_.header().bell).forget(claimant);
  note_claim(claimant, 0);
  return runs;
}

int Ring::bury_in(int slot, int claimant) noexcept {
  int runs = 0;
  for (int run = 0; run < armed_[static_cast<std::size_t>(slot)].num_runs; ++run) {
    if (!holds_run(slot, run, claimant)) continue;
    give_back_dead_run(slot, run);
    ++runs;
  }
  return runs;
}

bool Ring::holds(int slot, int claimant) const noexcept {
  for (int run = 0; run < armed_[static_cast<std::size_t>(slot)].num_runs; ++run) {
    if (holds_run(slot, run, claimant)) return true;
  }
  return false;
}

bool Ring::holds_run(int slot, int run, int claimant) const noexcept {
  const std::uint64_t done = bytes_.head(slot).done.load(std::memory_order_acquire);
  const std::uint64_t held = held_word(armed_[static_cast<std::size_t>(slot)].seq, claimant);
  return (done >> run & 1) == 0 && bytes_.owner(slot, run).load(std::memory_order_acquire) == held;
}

/// Extent and reports first: once the run is offered, another claimant may start it.
void Ring::give_back_dead_run(int slot, int run) noexcept {
  const Armed& armed = armed_[static_cast<std::size_t>(slot)];
  SlotHead& head = bytes_.head(slot);
  const std::uint64_t bit = std::uint64_t{1} << run;
  void_reports(slot, run);
  restore_indices(slot, run);
  if (armed.extent == kNoExtent) free_extents_of(slot);
  if (armed.draining) {
    bytes_.owner(slot, run).store(cancelled_word(armed.seq), std::memory_order_relaxed);
    head.done.fetch_or(bit, std::memory_order_seq_cst);
    return;
  }
  bytes_.owner(slot, run).store(offered_word(armed.seq, armed.assigned), std::memory_order_release);  // [offered]
  head.todo.fetch_or(bit, std::memory_order_relaxed);
}

/// What the dead claimant replaced.
void Ring::restore_indices(int slot, int run) noexcept {
  const Armed& armed = armed_[static_cast<std::size_t>(slot)];
  if (armed.indices.empty()) return;
  const int first = run * armed.rows_per_run, rows = std::min(armed.rows_per_run, armed.rows - first);
  std::copy_n(armed.indices.begin() + first, rows, bytes_.indices(slot) + first);
}

/// All that are bound to the slot's batch, also one that the slot does not name yet.
void Ring::free_extents_of(int slot) noexcept {
  const std::uint64_t seq = armed_[static_cast<std::size_t>(slot)].seq;
  bytes_.head(slot).extent.store(kNoExtent, std::memory_order_relaxed);
  for (int i = 0; i < config_.num_extents; ++i) {
    std::uint64_t word = bound_word(seq);
    bytes_.extent(i).compare_exchange_strong(word, kExtentFree, std::memory_order_release,
                                             std::memory_order_relaxed);  // [freed]
  }
}

}  // namespace infeed
