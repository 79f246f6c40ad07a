#pragma once
/// Bytes that cross to spawned workers once: written to a sealed memory file, mapped privately by each.

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/memfd.h"

namespace infeed {

/// One owner. Not written after seal().
class SealedFile {
 public:
  /// Throws MemoryError.
  SealedFile(const char* label, std::size_t bytes) : file_(Memfd::create(label, bytes)) {}

  /// Throws MemoryError where the system has no memory for it.
  void write(std::size_t offset, std::span<const std::byte> bytes);
  /// From here on nobody can write to the file, whoever has its descriptor.
  void seal() noexcept;

  [[nodiscard]] int fd() const noexcept { return file_.fd(); }

 private:
  Memfd file_;
};

/// A read-only mapping of a whole file; the descriptor is no longer needed once it stands. Neither copied nor moved.
class FileMapping {
 public:
  /// Throws ConfigError where `fd` is not open here or is no file of at least 1 byte, MemoryError where it cannot be
  /// mapped.
  explicit FileMapping(std::int64_t fd);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {start_, size_}; }

 private:
  const std::byte* start_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace infeed
