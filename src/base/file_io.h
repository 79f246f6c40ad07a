#pragma once
/// Whole reads and writes at a place of a file, past interruptions and short counts.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "infeed/base/export.h"

namespace infeed {

/// As many bytes as there are. Fewer: the file ends there (errno is 0), or errno says why no more can be read.
[[nodiscard]] INFEED_API std::size_t read_some(int fd, std::span<std::byte> bytes, std::uint64_t offset) noexcept;

/// All bytes, or false with errno: no short write is left to the caller. Never raises SIGXFSZ.
[[nodiscard]] INFEED_API bool write_all(int fd, std::span<const std::byte> bytes, std::uint64_t offset) noexcept;

/// When the file was last written, in ns since 1970.
[[nodiscard]] inline std::int64_t mtime_ns_of(const struct stat& status) noexcept {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

}  // namespace infeed
