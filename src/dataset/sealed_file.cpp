#include "dataset/sealed_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "base/file_io.h"
#include "infeed/base/error.h"

namespace infeed {

void SealedFile::write(std::size_t offset, std::span<const std::byte> bytes) {
  if (write_all(file_.fd(), bytes, offset)) return;
  throw MemoryError(
      fmt::format("{} bytes for spawned workers cannot be written to a memory file: {}. Use fork or "
                  "thread workers, which share the memory that is there.",
                  bytes.size(), std::strerror(errno)));
}

void SealedFile::seal() noexcept {
  fcntl(file_.fd(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL);  // a second line only, as in Memfd
}

FileMapping::FileMapping(std::int64_t fd) {
  struct stat status {};
  const bool possible = fd >= 0 && fd <= std::numeric_limits<int>::max();
  if (!possible || fstat(static_cast<int>(fd), &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    throw ConfigError(
        fmt::format("descriptor {} should be a memory file that this process inherited, but it is not open "
                    "or is something else. A dataset's spec() serves only processes that inherit its fds.",
                    fd));
  size_ = static_cast<std::size_t>(status.st_size);
  void* start = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, static_cast<int>(fd), 0);
  if (start == MAP_FAILED)
    throw MemoryError(fmt::format("a memory file of {} bytes cannot be mapped: {}.", size_, std::strerror(errno)));
  start_ = static_cast<const std::byte*>(start);
}

FileMapping::~FileMapping() { munmap(const_cast<std::byte*>(start_), size_); }

}  // namespace infeed
