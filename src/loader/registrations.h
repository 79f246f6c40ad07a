#pragma once
/// Which of the loader's extents are page-locked for a device.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "infeed/batch/batch.h"
#include "infeed/device/device.h"

namespace infeed {

/// Used prefixes of extents, found by address. A range that grew is locked anew; beyond `most` ranges the one unused
/// longest is unlocked. Memory that ends with its batch (a private copy) is never locked: only a loader's arena is.
///
/// Threads: the staging thread's; the counts from any.
class Registrations {
 public:
  Registrations(std::shared_ptr<Device> device, std::size_t most);

  /// Sees to it that the pages of [begin, begin + bytes) are locked; no copy may use them yet. False where that cannot
  /// be: the copy is a plain one then. A device that refuses is warned of once and not asked again.
  bool lock(std::byte* begin, std::size_t bytes);
  /// The same for all arrays of a batch: they lie in one piece of memory, with small gaps. False too if it has no bytes.
  bool lock(const Batch& host);
  /// Unlocks all. No copy may use them any more.
  void clear() noexcept;

  [[nodiscard]] int count() const noexcept { return count_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Range {
    HostRegistration registration;
    std::uint64_t last_use = 0;
  };
  [[nodiscard]] bool lies_in_arena(const std::byte* begin, const std::byte* end);
  [[nodiscard]] bool lock_anew(std::byte* begin, std::byte* end);
  void evict_oldest() noexcept;
  void recount() noexcept;

  std::shared_ptr<Device> device_;
  std::size_t most_;
  std::size_t page_;
  std::map<std::byte*, Range> ranges_;
  const std::byte* arena_begin_ = nullptr;
  const std::byte* arena_end_ = nullptr;
  std::uint64_t uses_ = 0;
  bool refused_ = false;
  std::atomic<int> count_{0};
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace infeed
