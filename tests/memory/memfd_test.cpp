#include "memory/memfd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "infeed/base/error.h"
#include "support/child.h"

namespace infeed {
namespace {

TEST(MemfdTest, HasTheSizeThatWasAsked) { EXPECT_EQ(Memfd::create("test", 12345).size(), 12345u); }

TEST(MemfdTest, ClosesOnExec) {
  const Memfd file = Memfd::create("test", 1);
  EXPECT_TRUE(fcntl(file.fd(), F_GETFD) & FD_CLOEXEC);
}

TEST(MemfdTest, CannotBeShrunkUnderAMapping) {
  const Memfd file = Memfd::create("test", 4096);
  EXPECT_NE(ftruncate(file.fd(), 0), 0);
  EXPECT_EQ(file.size(), 4096u);
}

TEST(MemfdTest, ClosesItsDescriptorOnce) {
  Memfd file = Memfd::create("test", 1);
  const int fd = file.fd();
  { const Memfd moved = std::move(file); }
  EXPECT_EQ(fcntl(fd, F_GETFD), -1);
}

TEST(MemfdTest, AssignmentDropsWhatWasHeld) {
  Memfd file = Memfd::create("test", 1);
  const int old = file.fd();
  file = Memfd::create("test", 2);
  EXPECT_EQ(file.size(), 2u);
  EXPECT_EQ(fcntl(old, F_GETFD), -1);
}

TEST(MemfdTest, AdoptTakesTheDescriptorOver) {
  const Memfd file = Memfd::create("test", 77);
  EXPECT_EQ(Memfd::adopt(dup(file.fd())).size(), 77u);
}

TEST(MemfdTest, AClosedDescriptorIsAnError) { EXPECT_THROW((void)Memfd::adopt(-1).size(), MemoryError); }

TEST(MemfdTest, NamesTheFileSizeLimitInsteadOfDyingOfIt) {
  EXPECT_TRUE(testing::holds_in_child([] {
    const testing::LoweredLimit lowered(RLIMIT_FSIZE, 1 << 20);
    return testing::throws_naming<MemoryError>([] { (void)Memfd::create("test", 2 << 20); },
                                               {"RLIMIT_FSIZE", "1048576", "2097152"});
  }));
}

TEST(MemfdTest, NamesTheDescriptorLimit) {
  const auto create = [] {
    // Lifted before the error is read: sanitizers need a descriptor then.
    const testing::LoweredLimit lowered(RLIMIT_NOFILE, 3);
    (void)Memfd::create("test", 1);
  };
  EXPECT_TRUE(testing::holds_in_child([&] {
    return testing::throws_naming<MemoryError>(create, {"RLIMIT_NOFILE", "all 3"});
  }));
}

TEST(MemfdTest, NamesASizeThatNoFileCanHave) {
  EXPECT_TRUE(testing::throws_naming<MemoryError>([] { (void)Memfd::create("test", ~std::size_t{0}); },
                                                  {"18446744073709551615"}));
}

}  // namespace
}  // namespace infeed
