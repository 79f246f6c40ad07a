#include <unistd.h>

#include <algorithm>
#include <bit>

#include "ring/owner.h"
#include "ring/ring.h"
#include "ring/steps.h"

// Claim: smallest seq with work -> CAS the run's owner word -> clear its todo bit -> bind an extent (whole) -> read the
// order. Everything that a claimant reads of a slot it reads after its CAS. It may die between any two of these steps.

namespace infeed {

std::optional<Claim> Ring::claim(int claimant) noexcept {
  std::optional<OpenSlot> open;
  while ((open = oldest_open_slot(claimant, open ? open->seq : 0))) {  // a stale slot does not hide the next one
    if (auto claim = claim_in(*open, claimant)) return claim;
  }
  return std::nullopt;
}

/// Every word here is a hint, but for seq: with it, what was written before [armed] is visible.
std::optional<Ring::OpenSlot> Ring::oldest_open_slot(int claimant, std::uint64_t after) const noexcept {
  std::optional<OpenSlot> oldest;
  for (int slot = 0; slot < config_.num_slots; ++slot) {
    const SlotHead& head = bytes_.head(slot);
    const std::uint64_t seq = head.seq.load(std::memory_order_acquire);  // pairs with [armed]
    if (seq <= after || (oldest && seq >= oldest->seq) || head.todo.load(std::memory_order_relaxed) == 0) continue;
    const std::int32_t assigned = head.assigned.load(std::memory_order_relaxed);
    if (assigned == kAnyone || assigned == claimant) oldest = OpenSlot{slot, seq};
  }
  return oldest;
}

std::optional<Claim> Ring::claim_in(const OpenSlot& open, int claimant) noexcept {
  SlotHead& head = bytes_.head(open.slot);
  for (std::uint64_t bits = head.todo.load(std::memory_order_relaxed); bits != 0; bits &= bits - 1) {
    const int run = std::countr_zero(bits);
    if (!start_run(open, run, claimant)) continue;
    ring_step(RingStep::kAfterCas);
    head.todo.fetch_and(~(std::uint64_t{1} << run), std::memory_order_relaxed);
    ring_step(RingStep::kAfterTodo);
    if (bind_extent(open)) return describe(open, run, claimant);
    return_run(open, run, claimant);
    return std::nullopt;
  }
  return std::nullopt;
}

bool Ring::start_run(const OpenSlot& open, int run, int claimant) noexcept {
  auto& owner = bytes_.owner(open.slot, run);
  std::uint64_t word = owner.load(std::memory_order_relaxed);
  if (word != free_word(open.seq) && word != offered_word(open.seq, claimant)) return false;
  ring_step(RingStep::kBeforeCas);
  return owner.compare_exchange_strong(word, held_word(open.seq, claimant),
                                       std::memory_order_acquire,  // pairs with [offered]
                                       std::memory_order_relaxed);
}

bool Ring::bind_extent(const OpenSlot& open) noexcept {
  SlotHead& head = bytes_.head(open.slot);
  if (head.extent.load(std::memory_order_relaxed) != kNoExtent) return true;
  int extent = bind_lowest_extent(bound_word(open.seq));
  if (extent == kNoExtent) {  // ask to be rung, then look once more: see release_extent()
    bytes_.header().extent_wanted.store(1, std::memory_order_seq_cst);
    extent = bind_lowest_extent(bound_word(open.seq));
  }
  if (extent == kNoExtent) return false;
  ring_step(RingStep::kAfterBind);
  head.extent.store(extent, std::memory_order_relaxed);
  return true;
}

/// The hint comes before the word, so that no hint is written into a slot that was armed anew meanwhile.
void Ring::return_run(const OpenSlot& open, int run, int claimant) noexcept {
  SlotHead& head = bytes_.head(open.slot);
  ring_step(RingStep::kBeforeReturn);
  head.todo.fetch_or(std::uint64_t{1} << run, std::memory_order_relaxed);
  auto& owner = bytes_.owner(open.slot, run);
  const std::uint64_t offered = offered_word(open.seq, head.assigned.load(std::memory_order_relaxed));
  owner.store(offered, std::memory_order_seq_cst);  // [offered]
  // Dekker with cancel(): it stores draining, then looks at the owner word. One of the two ends the run; a claimant
  // does it as the holder, so that its done bit cannot come after the slot is armed anew.
  if (head.draining.load(std::memory_order_seq_cst) != open.seq) return;
  std::uint64_t word = offered;
  if (!owner.compare_exchange_strong(word, held_word(open.seq, claimant), std::memory_order_acquire)) return;
  publish({.slot = open.slot, .run = run, .seq = open.seq}, -1);  // a sleeping consumer finds it at its next look
}

Claim Ring::describe(const OpenSlot& open, int run, int claimant) const noexcept {
  SlotHead& head = bytes_.head(open.slot);
  Claim claim{.slot = open.slot, .run = run, .claimant = claimant};
  claim.first_row = run * head.rows_per_run;
  claim.rows = std::min(head.rows_per_run, head.rows - claim.first_row);
  claim.extent = head.extent.load(std::memory_order_relaxed);
  claim.seq = open.seq;
  claim.epoch = head.epoch;
  claim.number = head.number;
  claim.shard = head.shard;
  claim.num_shards = head.num_shards;
  claim.stream_row = head.stream_row;
  if (head.has_indices != 0) {
    claim.indices = {bytes_.indices(open.slot) + claim.first_row, static_cast<std::size_t>(claim.rows)};
  }
  if (head.whole != 0) {
    head.rows_written = head.rows;
    head.nbytes = 0;
    head.shard_ended = 0;
  }
  return claim;
}

void Ring::set_result(const Claim& claim, int rows, std::size_t nbytes, bool shard_ended) noexcept {
  SlotHead& head = bytes_.head(claim.slot);
  head.rows_written = rows;
  head.nbytes = nbytes;
  head.shard_ended = shard_ended ? 1 : 0;
}

void Ring::publish(const Claim& claim, int ready_eventfd) noexcept {
  SlotHead& head = bytes_.head(claim.slot);
  const std::uint64_t full = head.full,
                      bit = std::uint64_t{1}
                            << claim.run;  // read now: after [written] the slot may carry another batch
  ring_step(RingStep::kBeforeDone);
  const std::uint64_t before = head.done.fetch_or(bit, std::memory_order_seq_cst);  // [written]
  ring_step(RingStep::kAfterDone);
  if ((before | bit) != full || bytes_.header().consumer_waits.load(std::memory_order_seq_cst) == 0) return;
  ring_step(RingStep::kBeforeRing);
  if (ready_eventfd < 0) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(ready_eventfd, &one, sizeof one);  // fails only where nobody listens
}

}  // namespace infeed
