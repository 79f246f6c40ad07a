#include "exchange/line.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "infeed/base/error.h"
#include "memory/limits.h"
#include "ring/doorbell.h"

namespace infeed {
namespace {

constexpr std::size_t kDefaultExtentBytes = std::size_t{4} << 30;
constexpr std::size_t kSmallestDefaultExtent = std::size_t{2} << 20;
constexpr int kLargestTask = 1 << 24;  // words
constexpr int kSmallestTask = 1 << 12;
constexpr int kExtents = 1024;
// Beside those of the tasks in flight: messages in the user's hands. With fewer free, take() copies.
constexpr int kSpareExtents = 2;

struct Sizes {
  RingConfig ring;
  ArenaOptions arena;
};

/// All that is not given is halved `halvings` times, down to where it would be of no use.
Sizes sizes_for(const ExchangeOptions& options, int halvings) {
  const std::size_t extent = std::max(kDefaultExtentBytes >> halvings, kSmallestDefaultExtent);
  Sizes sizes;
  sizes.ring = {.num_slots = options.num_slots,
                .max_rows = 1 + std::max(kLargestTask >> halvings, kSmallestTask),
                .max_claimants = options.num_workers,
                .num_extents = std::max(kExtents, 2 * options.num_slots + kSpareExtents)};
  sizes.arena = {.control_bytes = Ring::bytes(sizes.ring),
                 .extent_bytes = options.extent_bytes != 0 ? options.extent_bytes : extent,
                 .num_extents = sizes.ring.num_extents,
                 .min_extents = options.num_slots + kSpareExtents};
  return sizes;
}

/// Addresses are free but where RLIMIT_AS or RLIMIT_FSIZE counts them.
std::shared_ptr<BatchMemory> make_memory(const ExchangeOptions& options) {
  constexpr int kMostHalvings = 12;
  static_cast<void>(Ring::bytes({.num_slots = options.num_slots, .max_claimants = options.num_workers}));  // may throw
  for (int halvings = 0;; ++halvings) {
    Sizes sizes = sizes_for(options, halvings);
    try {
      Arena arena = Arena::create(sizes.arena);
      sizes.ring.num_extents = arena.num_extents();
      return std::make_shared<BatchMemory>(std::move(arena), sizes.ring, sizes.arena.min_extents);
    } catch (const MemoryError&) {
      if (halvings == kMostHalvings) throw;
    }
  }
}

}  // namespace

ExchangeLine::ExchangeLine(const ExchangeOptions& options) : memory_(make_memory(options)) {
  const ArenaOptions sizes = arena().geometry();
  const bool fits = options.num_workers + 1 <= read_usable_cpus();
  geometry_ = {.control_bytes = sizes.control_bytes,
               .extent_bytes = sizes.extent_bytes,
               .num_extents = sizes.num_extents,
               .spin_us = fits ? Doorbell::kMaxSpinUs : 0,
               .consumer_pid = ::getpid()};
}

}  // namespace infeed
