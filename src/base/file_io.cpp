#include "base/file_io.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace infeed {

std::size_t read_some(int fd, std::span<std::byte> bytes, std::uint64_t offset) noexcept {
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t got = pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got == 0) errno = 0;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
  }
  return have;
}

bool write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && offset + bytes.size() > limit.rlim_cur) {
    errno = EFBIG;
    return false;
  }
  while (!bytes.empty()) {
    const ssize_t done = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done == 0) errno = ENOSPC;
    if (done <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return true;
}

}  // namespace infeed
