#include "memory/arena.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>

#include "infeed/base/error.h"
#include "support/child.h"
#include "support/sanitizers.h"

namespace infeed {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

Arena small_arena() { return Arena::create({.control_bytes = 100, .extent_bytes = 3 * kMiB, .num_extents = 4}); }

/// "VmFlags" of the mapping that starts at `address`, from /proc/self/smaps.
std::string flags_of_mapping(const void* address) {
  std::ostringstream start;
  start << std::hex << reinterpret_cast<std::uintptr_t>(address) << '-';
  std::ifstream file("/proc/self/smaps");
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(start.str(), 0) == 0) found = true;
    if (found && line.rfind("VmFlags:", 0) == 0) return line;
  }
  return "";
}

TEST(ArenaTest, RoundsExtentsToTwoMebibytes) {
  const Arena arena = small_arena();
  EXPECT_EQ(arena.extent_bytes(), 4 * kMiB);
  EXPECT_EQ(arena.extent(1) - arena.extent(0), 4 * static_cast<std::ptrdiff_t>(kMiB));
}

TEST(ArenaTest, StartsZeroedAndPageAligned) {
  const Arena arena = small_arena();
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.control()) % 4096, 0u);
  EXPECT_EQ(*arena.control(), std::byte{0});
  EXPECT_EQ(*arena.extent(3), std::byte{0});
}

TEST(ArenaTest, ControlBlockAndExtentsDoNotOverlap) {
  const Arena arena = Arena::create({.control_bytes = 3 * kMiB, .extent_bytes = 1, .num_extents = 2});
  std::memset(arena.control(), 1, 3 * kMiB);
  EXPECT_EQ(*arena.extent(0), std::byte{0});
}

TEST(ArenaTest, CommitsOnlyWhatIsTouched) {
  const Arena arena = Arena::create({.control_bytes = 1, .extent_bytes = 1024 * kMiB, .num_extents = 64});
  EXPECT_EQ(arena.committed_bytes(), 0u);
  std::memset(arena.extent(arena.num_extents() - 1), 1, 2 * kMiB);
  EXPECT_GE(arena.committed_bytes(), 2 * kMiB);
  EXPECT_LT(arena.committed_bytes(), 4 * kMiB);
}

TEST(ArenaTest, PunchGivesMemoryBackAndReadsAsZeros) {
  const Arena arena = small_arena();
  std::memset(arena.extent(1), 7, arena.extent_bytes());
  std::memset(arena.extent(2), 7, arena.extent_bytes());
  arena.punch(1, 100);
  EXPECT_EQ(arena.extent(1)[4095], std::byte{7});
  EXPECT_EQ(arena.extent(1)[4096], std::byte{0});
  EXPECT_EQ(arena.extent(2)[0], std::byte{7});
  EXPECT_LT(arena.committed_bytes(), 5 * kMiB);
}

TEST(ArenaTest, PunchBeyondTheEndDoesNothing) {
  const Arena arena = small_arena();
  std::memset(arena.extent(1), 7, arena.extent_bytes());
  arena.punch(0, arena.extent_bytes());
  EXPECT_EQ(arena.extent(1)[0], std::byte{7});
}

TEST(ArenaTest, StaysOutOfCoreDumps) {
  const Arena arena = small_arena();
  EXPECT_NE(flags_of_mapping(arena.control()).find(" dd"), std::string::npos);
}

TEST(ArenaTest, IsSharedWithAForkedChild) {
  const Arena arena = small_arena();
  EXPECT_TRUE(testing::holds_in_child([&] { return (arena.extent(2)[5] = std::byte{42}) == std::byte{42}; }));
  EXPECT_EQ(arena.extent(2)[5], std::byte{42});
}

TEST(ArenaTest, AttachSeesTheSameBytes) {
  const Arena arena = small_arena();
  const Arena second = Arena::attach(Memfd::adopt(dup(arena.fd())), arena.geometry());
  arena.extent(3)[9] = std::byte{9};
  EXPECT_EQ(second.extent(3)[9], std::byte{9});
  EXPECT_NE(flags_of_mapping(second.control()).find(" dd"), std::string::npos);
}

TEST(ArenaTest, AttachRefusesAFileOfAnotherSize) {
  const Arena arena = small_arena();
  ArenaOptions geometry = arena.geometry();
  geometry.num_extents += 1;
  EXPECT_THROW((void)Arena::attach(Memfd::adopt(dup(arena.fd())), geometry), ConfigError);
  geometry.num_extents = 0;
  EXPECT_THROW((void)Arena::attach(Memfd::adopt(dup(arena.fd())), geometry), ConfigError);
}

TEST(ArenaTest, AttachRefusesSizesThatOverflow) {
  const Arena arena = small_arena();
  ArenaOptions geometry = arena.geometry();
  geometry.extent_bytes = std::size_t{1} << 45;
  geometry.num_extents = 1 << 30;
  EXPECT_THROW((void)Arena::attach(Memfd::adopt(dup(arena.fd())), geometry), ConfigError);
}

TEST(ArenaTest, RefusesSizesThatNoMachineHas) {
  EXPECT_THROW((void)Arena::create({.control_bytes = 1, .extent_bytes = 0}), ConfigError);
  EXPECT_THROW((void)Arena::create({.control_bytes = 1, .extent_bytes = ~std::size_t{0}}), ConfigError);
  EXPECT_THROW((void)Arena::create({.control_bytes = ~std::size_t{0}, .extent_bytes = 1}), ConfigError);
  EXPECT_THROW((void)Arena::create({.control_bytes = 1, .extent_bytes = 1, .num_extents = 0}), ConfigError);
}

TEST(ArenaTest, TakesFewerExtentsThanTheAddressSpaceCannotHold) {
  const Arena arena = Arena::create({.control_bytes = 1, .extent_bytes = std::size_t{1} << 34, .num_extents = 1 << 20});
  EXPECT_GE(arena.num_extents(), 4);
  EXPECT_LT(arena.num_extents(), 1 << 20);
}

TEST(ArenaTest, UsesHalfOfWhatTheAddressSpaceLimitLeaves) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer's shadow needs an unlimited address space";
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_AS, std::size_t{4} << 30);
    const Arena arena = Arena::create({.control_bytes = 1, .extent_bytes = 64 * kMiB, .num_extents = 1024});
    return arena.num_extents() > 16 && arena.num_extents() <= 32;
  }));
}

TEST(ArenaTest, NamesTheAddressSpaceLimit) {
  if (testing::kSanitized) GTEST_SKIP() << "the sanitizer's shadow needs an unlimited address space";
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_AS, std::size_t{1} << 30);
    return testing::throws_naming<MemoryError>(
        [] { (void)Arena::create({.control_bytes = 1, .extent_bytes = 512 * kMiB}); },
        {"RLIMIT_AS", "at least 4 extents of 512 MiB"});
  }));
}

TEST(ArenaTest, FitsIntoTheFileSizeLimit) {
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_FSIZE, 64 * kMiB);
    return Arena::create({.control_bytes = 1, .extent_bytes = 2 * kMiB}).num_extents() == 31;
  }));
}

TEST(ArenaTest, NamesTheFileSizeLimit) {
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_FSIZE, 4 * kMiB);
    return testing::throws_naming<MemoryError>(
        [] { (void)Arena::create({.control_bytes = 1, .extent_bytes = 2 * kMiB}); }, {"RLIMIT_FSIZE", "4 MiB"});
  }));
}

TEST(ArenaTest, LeavesNoDescriptorBehind) {
  int fd = -1;
  {
    Arena arena = small_arena();
    fd = arena.fd();
    const Arena moved = std::move(arena);
    EXPECT_EQ(moved.fd(), fd);
  }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

}  // namespace
}  // namespace infeed
