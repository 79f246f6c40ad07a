#include "infeed/train/tensor/allocator.h"

#include <fmt/format.h>
#include <sanitizer/asan_interface.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::size_t kSmall = 512;  // below, sizes are multiples of kAlignment

std::byte* take_from_system(std::size_t block_bytes) noexcept {
  const bool huge = block_bytes >= kHugePage;
  void* block = nullptr;
  if (posix_memalign(&block, huge ? kHugePage : kAlignment, block_bytes) != 0) return nullptr;
  if (huge) madvise(block, block_bytes, MADV_HUGEPAGE);  // advice: may fail
  return static_cast<std::byte*>(block);
}

// A free block's first bytes hold the address of the next free one of its size.
std::byte* next_of(const std::byte* block) noexcept {
  std::byte* next = nullptr;
  std::memcpy(static_cast<void*>(&next), block, sizeof next);
  return next;
}

void set_next(std::byte* block, std::byte* next) noexcept {
  std::memcpy(block, static_cast<const void*>(&next), sizeof next);
}

}  // namespace

Allocator::~Allocator() = default;

CachingAllocator::~CachingAllocator() { empty_cache_locked(); }

std::size_t CachingAllocator::block_bytes(std::size_t bytes) noexcept {
  if (bytes <= kSmall) return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  const std::size_t step = std::bit_floor(bytes - 1) / 8;
  return (bytes + step - 1) / step * step;
}

std::size_t CachingAllocator::list_of(std::size_t block_bytes) noexcept {
  if (block_bytes <= kSmall) return block_bytes / kAlignment;                           // 1 ... 8
  const auto doubling = static_cast<std::size_t>(std::bit_width(block_bytes - 1)) - 1;  // 9 for (512, 1024]
  const std::size_t eighth =
      (block_bytes - (std::size_t{1} << doubling)) / ((std::size_t{1} << doubling) / 8);  // 1 ... 8
  return (doubling - 8) * 8 + eighth;
}

std::byte* CachingAllocator::allocate(std::size_t bytes) {
  if (bytes > (std::size_t{1} << 47))
    throw MemoryError(fmt::format("a tensor of {} bytes exceeds the address space.", bytes));
  const std::size_t size = block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  std::byte*& head = free_[list_of(size)];
  std::byte* block = head;
  if (block != nullptr) {
    head = next_of(block);
    stats_.cached_bytes -= size;
    ++stats_.hits;
  } else {
    block = take_from_system(size);
    if (block == nullptr) {
      empty_cache_locked();
      block = take_from_system(size);
    }
    if (block == nullptr)
      throw MemoryError(
          fmt::format("no memory for a tensor of {} bytes; {} bytes are in use by others. Lower batch_size.", bytes,
                      stats_.in_use_bytes));
    ++stats_.misses;
  }
  stats_.in_use_bytes += size;
  stats_.peak_in_use_bytes = std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
  ASAN_POISON_MEMORY_REGION(block, size);
  ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  return block;
}

void CachingAllocator::deallocate(std::byte* block, std::size_t bytes) noexcept {
  const std::size_t size = block_bytes(bytes);
  const std::lock_guard lock(mutex_);
  ASAN_UNPOISON_MEMORY_REGION(block, size);
  stats_.in_use_bytes -= size;
  if (size > cache_limit_bytes_ || stats_.cached_bytes > cache_limit_bytes_ - size) {
    std::free(block);
    return;
  }
  std::byte*& head = free_[list_of(size)];
  set_next(block, head);
  head = block;
  ASAN_POISON_MEMORY_REGION(block + sizeof head, size - sizeof head);
  stats_.cached_bytes += size;
}

void CachingAllocator::set_cache_limit(std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  cache_limit_bytes_ = bytes;
  if (stats_.cached_bytes > bytes) empty_cache_locked();
}

void CachingAllocator::empty_cache() {
  const std::lock_guard lock(mutex_);
  empty_cache_locked();
}

void CachingAllocator::empty_cache_locked() noexcept {
  for (std::byte*& head : free_) {
    while (head != nullptr) std::free(std::exchange(head, next_of(head)));
  }
  stats_.cached_bytes = 0;
}

MemoryStats CachingAllocator::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

CachingAllocator& host_allocator() {
  static auto* const allocator = new CachingAllocator;  // intentionally leaked: static tensors may outlive it
  return *allocator;
}

}  // namespace infeed
