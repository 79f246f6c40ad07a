#include "ring/ring.h"

#include <fmt/format.h>

#include <new>

#include "infeed/base/error.h"

namespace infeed {

Ring::Ring(std::byte* memory, const RingConfig& config) : memory_(memory), config_(config), bytes_(memory, config) {}

std::size_t Ring::bytes(const RingConfig& config) { return RingLayout::of(config).total; }

Ring Ring::format(std::byte* memory, const RingConfig& config) {
  Ring ring(memory, config);
  auto* header = new (memory) RingHeader{};
  header->magic = kRingMagic;
  header->version = kRingVersion;
  header->num_slots = config.num_slots;
  header->max_rows = config.max_rows;
  header->max_claimants = config.max_claimants;
  header->num_extents = config.num_extents;
  header->total_bytes = bytes(config);
  for (int claimant = 0; claimant < config.max_claimants; ++claimant)
    ring.bytes_.claimant(claimant).index.store(-1, std::memory_order_relaxed);  // no sample in hand yet
  ring.armed_.resize(static_cast<std::size_t>(config.num_slots));
  return ring;
}

Ring Ring::attach(std::byte* memory, std::size_t size) {
  if (size < sizeof(RingHeader)) {
    throw ConfigError(
        fmt::format("a control block of {} bytes is shorter than a ring's header of {}.", size, sizeof(RingHeader)));
  }
  const auto& header = *reinterpret_cast<const RingHeader*>(memory);
  if (header.magic != kRingMagic || header.version != kRingVersion) {
    throw ConfigError(fmt::format(
        "the control block has magic {:#x} and version {}, this build expects {:#x} and {}. Worker and parent must "
        "come from the same build of infeed.",
        header.magic, header.version, kRingMagic, kRingVersion));
  }
  const RingConfig config{header.num_slots, header.max_rows, header.max_claimants, header.num_extents};
  const std::size_t needed = bytes(config);
  if (needed != header.total_bytes || needed > size) {
    throw ConfigError(fmt::format(
        "the control block has {} bytes and names {}, a ring of its sizes has {}. Worker and parent must come from "
        "the same build of infeed.",
        size, header.total_bytes, needed));
  }
  return Ring(memory, config);
}

void Ring::ring_workers(bool all, int wanted) noexcept {
  Doorbell bell(bytes_.header().bell);
  all ? bell.ring_all() : bell.ring(wanted);
}

void Ring::ring_claimant(int claimant) noexcept { Doorbell(bytes_.header().bell).ring_one(claimant); }

int Ring::sleepers() const noexcept { return Doorbell(bytes_.header().bell).sleepers(); }

std::uint32_t Ring::bell() const noexcept { return Doorbell(bytes_.header().bell).value(); }

void Ring::wait_for_work(int claimant, std::uint32_t seen, int spin_us, int timeout_ms) noexcept {
  Doorbell(bytes_.header().bell).wait(claimant, seen, spin_us, timeout_ms);
}

void Ring::request_stop() noexcept {
  bytes_.header().stop.store(1, std::memory_order_release);  // [stopped]
  ring_workers(true);
}

bool Ring::stopping() const noexcept {
  return bytes_.header().stop.load(std::memory_order_acquire) != 0;
}  // pairs with [stopped]

void Ring::retire(int claimant, bool leave) noexcept {
  bytes_.claimant(claimant).leave.store(leave ? 1 : 0, std::memory_order_relaxed);  // a flag alone: the bell orders it
}

bool Ring::retired(int claimant) const noexcept {
  return bytes_.claimant(claimant).leave.load(std::memory_order_relaxed) != 0;
}

// The consumer's Dekker: it stores consumer_waits, then reads `done`; a claimant sets `done` [written], then reads
// consumer_waits.
void Ring::begin_wait() noexcept { bytes_.header().consumer_waits.store(1, std::memory_order_seq_cst); }
void Ring::end_wait() noexcept { bytes_.header().consumer_waits.store(0, std::memory_order_relaxed); }

}  // namespace infeed
