#pragma once
/// The consumer's doorbell.

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "infeed/base/error.h"
#include "memory/memfd.h"

namespace infeed {

/// Owns an eventfd (non-blocking, close-on-exec).
class EventFd {
 public:
  EventFd() : fd_(above_standard_streams(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))) {
    if (fd_ < 0)
      throw MemoryError(
          fmt::format("no descriptor for a doorbell (errno {}). Raise the limit of open files (ulimit -n).", errno));
  }
  ~EventFd() { ::close(fd_); }
  EventFd(const EventFd&) = delete;
  EventFd& operator=(const EventFd&) = delete;

  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Wakes who polls it.
  void ring() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(fd_, &one, sizeof one);
  }
  /// Takes all rings.
  void drain() const noexcept {
    std::uint64_t rings = 0;
    [[maybe_unused]] const auto got = ::read(fd_, &rings, sizeof rings);
  }

 private:
  int fd_;
};

}  // namespace infeed
