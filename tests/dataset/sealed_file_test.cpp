#include "dataset/sealed_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>

#include "infeed/base/error.h"

namespace infeed {
namespace {

TEST(SealedFile, IsMappedAsItWasWritten) {
  SealedFile file("test", 5000);
  const std::vector<std::byte> bytes(1000, std::byte{7});
  file.write(4000, bytes);
  file.seal();
  const FileMapping mapping(file.fd());
  ASSERT_EQ(mapping.bytes().size(), 5000U);
  EXPECT_EQ(mapping.bytes()[3999], std::byte{0});
  EXPECT_EQ(std::memcmp(mapping.bytes().data() + 4000, bytes.data(), 1000), 0);
}

TEST(SealedFile, IsNotWrittenAfterItsSeal) {
  SealedFile file("test", 10);
  file.seal();
  const std::byte byte{1};
  EXPECT_THROW(file.write(0, {&byte, 1}), MemoryError);
}

TEST(FileMapping, OutlivesTheDescriptor) {
  auto file = std::make_unique<SealedFile>("test", 10);
  const FileMapping mapping(file->fd());
  file.reset();
  EXPECT_EQ(mapping.bytes()[9], std::byte{0});
}

TEST(FileMapping, RefusesDescriptorsThatAreNoFile) {
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  EXPECT_THROW(FileMapping{pipe_fds[0]}, ConfigError);
  close(pipe_fds[0]);
  close(pipe_fds[1]);
  for (const std::int64_t fd : {std::int64_t{-1}, std::int64_t{pipe_fds[0]}, std::int64_t{1} << 40})
    EXPECT_THROW(FileMapping{fd}, ConfigError) << fd;
}

}  // namespace
}  // namespace infeed
