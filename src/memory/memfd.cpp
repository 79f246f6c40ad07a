#include "memory/memfd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {
namespace {

rlim_t soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

[[noreturn]] void throw_no_file(const char* label, int error) {
  if (error == EMFILE) {
    throw MemoryError(
        fmt::format("memory file '{}' needs a descriptor, and this process has all {} of its own in use. Raise "
                    "RLIMIT_NOFILE (ulimit -n) or close files.",
                    label, soft_limit(RLIMIT_NOFILE)));
  }
  throw MemoryError(fmt::format("memory file '{}' cannot be made: memfd_create says {}.", label, std::strerror(error)));
}

/// ftruncate beyond RLIMIT_FSIZE raises SIGXFSZ, whose default is to kill.
void check_file_size_limit(const char* label, std::size_t bytes) {
  const rlim_t limit = soft_limit(RLIMIT_FSIZE);
  if (limit == RLIM_INFINITY || bytes <= limit) return;
  throw MemoryError(
      fmt::format("memory file '{}' of {} bytes is larger than RLIMIT_FSIZE allows ({} bytes). Raise it (ulimit -f).",
                  label, bytes, limit));
}

}  // namespace

int above_standard_streams(int fd) noexcept {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  close(fd);
  errno = error;
  return higher;
}

Memfd Memfd::create(const char* label, std::size_t bytes) {
  check_file_size_limit(label, bytes);
  Memfd file(above_standard_streams(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING)));
  if (file.fd_ < 0) throw_no_file(label, errno);
  const bool fits = bytes <= static_cast<std::size_t>(std::numeric_limits<off_t>::max());
  if (!fits || ftruncate(file.fd_, static_cast<off_t>(bytes)) != 0) {
    throw MemoryError(
        fmt::format("memory file '{}' cannot have {} bytes: {}.", label, bytes, std::strerror(fits ? errno : EFBIG)));
  }
  fcntl(file.fd_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);  // a second line only: a kernel without seals works too
  return file;
}

Memfd& Memfd::operator=(Memfd&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Memfd::~Memfd() {
  if (fd_ >= 0) close(fd_);
}

std::size_t Memfd::size() const {
  struct stat status {};
  if (fstat(fd_, &status) != 0)
    throw MemoryError(fmt::format("descriptor {} is no memory file: {}.", fd_, std::strerror(errno)));
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace infeed
