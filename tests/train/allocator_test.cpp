#include "infeed/train/tensor/allocator.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "infeed/base/error.h"
#include "infeed/train/tensor/tensor.h"

namespace infeed {
namespace {

TEST(CachingAllocatorTest, GivesTheBlockFreedLastAgain) {
  CachingAllocator allocator;
  std::byte* const first = allocator.allocate(1000);
  allocator.deallocate(first, 1000);
  std::byte* const second = allocator.allocate(1001);  // another size of the same class
  EXPECT_EQ(first, second);
  allocator.deallocate(second, 1001);
  EXPECT_EQ(allocator.stats().hits, 1U);
}

TEST(CachingAllocatorTest, AlignsEveryBlock) {
  CachingAllocator allocator;
  for (const std::size_t bytes : {0UL, 1UL, 64UL, 65UL, 4097UL, 3UL << 20}) {
    std::byte* const block = allocator.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U) << bytes;
    std::memset(block, 1, bytes);
    allocator.deallocate(block, bytes);
  }
}

TEST(CachingAllocatorTest, WastesAtMostAnEighthOfABlock) {
  for (std::size_t bytes = 513; bytes < (1U << 24); bytes += bytes / 7) {
    const std::size_t block = CachingAllocator::block_bytes(bytes);
    EXPECT_GE(block, bytes);
    EXPECT_LE(block - bytes, block / 8) << bytes;
    EXPECT_EQ(CachingAllocator::block_bytes(block), block) << bytes;
  }
}

TEST(CachingAllocatorTest, KeepsNoMoreThanItsLimit) {
  CachingAllocator allocator(4096);
  std::byte* const blocks[] = {allocator.allocate(4096), allocator.allocate(4096)};
  for (std::byte* block : blocks) allocator.deallocate(block, 4096);
  EXPECT_EQ(allocator.stats().cached_bytes, 4096U);
  allocator.set_cache_limit(0);
  EXPECT_EQ(allocator.stats().cached_bytes, 0U);
}

TEST(CachingAllocatorTest, GivesAllFreeBlocksBackOnRequest) {
  CachingAllocator allocator;
  for (int i = 0; i < 3; ++i) allocator.deallocate(allocator.allocate(100), 100);
  allocator.empty_cache();
  EXPECT_EQ(allocator.stats().cached_bytes, 0U);
  EXPECT_EQ(allocator.stats().in_use_bytes, 0U);
}

TEST(CachingAllocatorTest, RefusesWhatTheMachineCannotHold) {
  CachingAllocator allocator;
  EXPECT_THROW((void)allocator.allocate(std::size_t{1} << 60), MemoryError);
}

TEST(CachingAllocatorTest, ServesASecondEqualStepWithoutNewMemory) {
  const auto step = [] {
    const Tensor a = Tensor::zeros({100, 100});
    const Tensor b = Tensor::ones({7, 11, 13});
  };
  step();
  const auto misses = host_allocator().stats().misses;
  step();
  EXPECT_EQ(host_allocator().stats().misses, misses);
}

}  // namespace
}  // namespace infeed
