#pragma once
/// An anonymous memory file.

#include <cstddef>

namespace infeed {

/// `fd`, or where it took the place of a closed standard stream, a copy above those (and `fd` is closed): what the user
/// prints must not land in it. -1 with errno set stays -1.
[[nodiscard]] int above_standard_streams(int fd) noexcept;

/// Owns one descriptor of a memfd (close-on-exec). RLIMIT_FSIZE is looked at before the size is set, since ftruncate
/// past it kills. The size is sealed: no process that shares the file can shrink it under another's mapping.
class Memfd {
 public:
  /// Sparse file of `bytes`; `label` shows in /proc/PID/maps. Throws MemoryError with the limit that stands in the way.
  [[nodiscard]] static Memfd create(const char* label, std::size_t bytes);
  /// Takes `fd` over.
  [[nodiscard]] static Memfd adopt(int fd) noexcept { return Memfd(fd); }

  Memfd(Memfd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Memfd& operator=(Memfd&& other) noexcept;
  ~Memfd();

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Bytes of the file, holes included. Throws MemoryError if the descriptor is not open.
  [[nodiscard]] std::size_t size() const;

 private:
  explicit Memfd(int fd) noexcept : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace infeed
