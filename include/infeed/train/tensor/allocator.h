#pragma once
/// Where a tensor's memory comes from: a cache of blocks, so that a training step touches no fresh page.

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

#include "infeed/base/export.h"

namespace infeed {

/// Gives and takes blocks of one device's memory. Threads: any.
class INFEED_API Allocator {
 public:
  virtual ~Allocator();
  /// At least `bytes`, aligned to 64, contents undefined. Throws MemoryError.
  [[nodiscard]] virtual std::byte* allocate(std::size_t bytes) = 0;
  /// `bytes` as it was asked for.
  virtual void deallocate(std::byte* block, std::size_t bytes) noexcept = 0;
};

struct MemoryStats {
  std::size_t in_use_bytes = 0;       ///< asked for by living tensors, rounded to block sizes
  std::size_t peak_in_use_bytes = 0;  ///< largest in_use_bytes so far
  std::size_t cached_bytes = 0;       ///< free blocks kept for reuse
  std::uint64_t hits = 0;             ///< allocations served from the cache
  std::uint64_t misses = 0;           ///< allocations that took new memory
};

/// Keeps freed blocks in lists by size and gives them out again, warmest first. Eight sizes per doubling: at most an
/// eighth of a block is unused. Blocks of 2 MiB and more are aligned to, and ask for, huge pages.
///
/// A first touch of a page costs about as much as 2 KiB of arithmetic: without the cache a convolutional step pays a
/// third of its time for them. Threads: any; one lock.
class INFEED_API CachingAllocator final : public Allocator {
 public:
  static constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

  explicit CachingAllocator(std::size_t cache_limit_bytes = kNoLimit) : cache_limit_bytes_(cache_limit_bytes) {}
  ~CachingAllocator() override;
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  [[nodiscard]] std::byte* allocate(std::size_t bytes) override;
  void deallocate(std::byte* block, std::size_t bytes) noexcept override;

  /// Most bytes of free blocks to keep; what is freed beyond goes back to the system at once.
  void set_cache_limit(std::size_t bytes);
  /// Gives every free block back to the system.
  void empty_cache();
  [[nodiscard]] MemoryStats stats() const;

  /// Size of the block that serves `bytes`.
  [[nodiscard]] static std::size_t block_bytes(std::size_t bytes) noexcept;

 private:
  static constexpr std::size_t kNumLists = 512;
  [[nodiscard]] static std::size_t list_of(std::size_t block_bytes) noexcept;
  void empty_cache_locked() noexcept;

  mutable std::mutex mutex_;
  std::array<std::byte*, kNumLists> free_{};  // heads of lists through the free blocks themselves
  std::size_t cache_limit_bytes_;
  MemoryStats stats_;
};

/// The allocator of CPU tensors. It is never destroyed, so tensors may outlive main().
[[nodiscard]] INFEED_API CachingAllocator& host_allocator();

}  // namespace infeed
