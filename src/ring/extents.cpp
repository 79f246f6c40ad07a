#include <algorithm>

#include "ring/owner.h"
#include "ring/ring.h"

// An extent's owner word: FREE -> consumer's (armed, lent) -> FREE, or FREE -> bound to a batch by the claimant that
// starts it -> consumer's at take -> FREE. A word that names its batch outlives its writer, so no death leaks an
// extent.

namespace infeed {

/// Lowest first: few distinct extents stay warm in every process.
int Ring::bind_lowest_extent(std::uint64_t word) noexcept {
  auto& used = bytes_.header().extents_used;
  for (int i = 0; i < config_.num_extents; ++i) {
    auto& owner = bytes_.extent(i);
    if (owner.load(std::memory_order_relaxed) != kExtentFree) continue;
    std::int32_t known = used.load(std::memory_order_relaxed);  // raised before the word is taken: never too low
    while (known <= i && !used.compare_exchange_weak(known, i + 1, std::memory_order_relaxed)) {
    }
    std::uint64_t expected = kExtentFree;
    if (owner.compare_exchange_strong(expected, word, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {  // pairs with [freed]
      return i;
    }
  }
  return kNoExtent;
}

int Ring::acquire_extent() noexcept { return bind_lowest_extent(kExtentOfConsumer); }

bool Ring::acquire_extent(int extent) noexcept {
  std::uint64_t expected = kExtentFree;
  return bytes_.extent(extent).compare_exchange_strong(expected, kExtentOfConsumer, std::memory_order_acquire,
                                                       std::memory_order_relaxed);  // pairs with [freed]
}

void Ring::release_extent(int extent) noexcept {
  if (extent < 0 || extent >= config_.num_extents) return;
  std::uint64_t expected = kExtentOfConsumer;
  bytes_.extent(extent).compare_exchange_strong(expected, kExtentFree, std::memory_order_seq_cst);  // [freed]
  // Dekker with bind_extent(): it stores extent_wanted, then looks for a free extent once more.
  auto& wanted = bytes_.header().extent_wanted;
  if (wanted.load(std::memory_order_seq_cst) != 0 && wanted.exchange(0, std::memory_order_seq_cst) != 0)
    ring_workers(true);
}

int Ring::free_extents() const noexcept {
  const int used = std::clamp(bytes_.header().extents_used.load(std::memory_order_relaxed), 0, config_.num_extents);
  int count = config_.num_extents - used;
  for (int i = 0; i < used; ++i) count += extent_is_free(i) ? 1 : 0;
  return count;
}

bool Ring::extent_is_free(int extent) const noexcept {
  return extent >= 0 && extent < config_.num_extents &&
         bytes_.extent(extent).load(std::memory_order_relaxed) == kExtentFree;
}

}  // namespace infeed
