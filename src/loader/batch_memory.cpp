#include "loader/batch_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "memory/fork_watch.h"

namespace infeed {
namespace {

// How many batches pass between two looks at idle extents.
constexpr int kTrimInterval = 16;
// Of arrays in private copies.
constexpr std::size_t kAlign = 128;

}  // namespace

BatchMemory::BatchMemory(Arena arena, const RingConfig& config, int keep_warm)
    : arena_(std::move(arena)),
      ring_(Ring::format(arena_.control(), config)),
      home_(process_generation()),
      warm_bytes_(static_cast<std::size_t>(config.num_extents), 0),
      keep_warm_(keep_warm) {
  watch_forks();
  arena_.keep_while(held_);
}

BatchMemory::~BatchMemory() = default;

bool BatchMemory::ours() const noexcept { return process_generation() == home_; }

// Owned by a batch. The shared_ptr keeps arena and ring mapped as long as a batch lies in them.
struct BatchMemory::Lease {
  std::shared_ptr<BatchMemory> memory;
  int extent;
  std::uint64_t forks;
  Lease(std::shared_ptr<BatchMemory> owner, int number)
      : memory(std::move(owner)), extent(number), forks(user_forks()) {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { memory->give_back(extent, forks); }
};

std::shared_ptr<void> BatchMemory::lend(int extent) {
  auto lease = std::make_shared<Lease>(shared_from_this(), extent);
  held_.fetch_add(1, std::memory_order_relaxed);
  return lease;
}

void BatchMemory::give_back(int extent, std::uint64_t forks) noexcept {
  if (!ours()) return;
  const bool last = held_.fetch_sub(1, std::memory_order_relaxed) == 1;
  if (forks != user_forks()) return;           // retired: a child may still read it
  if (served_ && !last) arena_.punch(extent);  // with the last one the arena goes
  ring_.release_extent(extent);
}

struct BatchMemory::PrivateCopy {
  std::shared_ptr<BatchMemory> memory;
  std::unique_ptr<std::byte[]> bytes;
  PrivateCopy(std::shared_ptr<BatchMemory> owner, std::size_t nbytes)
      : memory(std::move(owner)), bytes(new std::byte[nbytes + kAlign]) {
    memory->held_.fetch_add(1, std::memory_order_relaxed);
  }
  PrivateCopy(const PrivateCopy&) = delete;
  PrivateCopy& operator=(const PrivateCopy&) = delete;
  ~PrivateCopy() { memory->held_.fetch_sub(1, std::memory_order_relaxed); }
};

std::shared_ptr<void> BatchMemory::copy_out(int extent, std::vector<NamedArray>& arrays) {
  std::size_t total = 0;
  for (const NamedArray& field : arrays) total += (field.array.nbytes() + kAlign - 1) / kAlign * kAlign;
  auto copy = std::make_shared<PrivateCopy>(shared_from_this(), total);
  const auto address = reinterpret_cast<std::uintptr_t>(copy->bytes.get());
  std::byte* place = copy->bytes.get() + (kAlign - address % kAlign) % kAlign;
  for (NamedArray& field : arrays) {
    const std::size_t nbytes = field.array.nbytes();
    std::memcpy(place, field.array.data, nbytes);
    field.array.data = place;
    place += (nbytes + kAlign - 1) / kAlign * kAlign;
  }
  ring_.release_extent(extent);
  return copy;
}

void BatchMemory::touch(int extent, std::size_t nbytes) noexcept {
  std::size_t& warm = warm_bytes_[static_cast<std::size_t>(extent)];
  warm = std::max(warm, nbytes);
  warm_end_ = std::max(warm_end_, static_cast<std::size_t>(extent) + 1);
}

bool BatchMemory::next_is_cold() const noexcept {
  for (std::size_t i = 0; i < warm_end_; ++i) {
    if (ring_.extent_is_free(static_cast<int>(i))) return warm_bytes_[i] == 0;
  }
  return true;
}

void BatchMemory::trim() noexcept {
  if (keep_all_warm_) return;
  int in_use = 0;
  int warm = 0;
  for (std::size_t i = 0; i < warm_end_; ++i) {
    if (warm_bytes_[i] == 0) continue;
    ++warm;
    if (!ring_.extent_is_free(static_cast<int>(i))) ++in_use;
  }
  peak_in_use_ = std::max(peak_in_use_, in_use);
  if (++batches_since_look_ < kTrimInterval) return;
  // One above the peak stays warm: it is what the next burst takes first. A queue that is nearly empty now, as at each
  // end of an epoch, is full again soon, and pages cost more to get back than to copy.
  const int keep = std::max(peak_in_use_ + 1, keep_warm_);
  for (std::size_t i = warm_end_; i-- > 0 && warm > keep;) {
    if (warm_bytes_[i] == 0 || !ring_.acquire_extent(static_cast<int>(i))) continue;
    arena_.punch(static_cast<int>(i));
    warm_bytes_[i] = 0;
    ring_.release_extent(static_cast<int>(i));
    --warm;
  }
  batches_since_look_ = 0;
  peak_in_use_ = 0;
}

}  // namespace infeed
