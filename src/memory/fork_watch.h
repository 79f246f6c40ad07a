#pragma once
/// Tells whether the user forked: a forked child shares our pages, and its copies of our objects must stay inert.

#include <cstdint>

namespace infeed {

/// Starts counting; idempotent. Threads: any.
void watch_forks();
/// Forks by the user's code in this process since watch_forks(); those made under an OwnFork are not counted.
[[nodiscard]] std::uint64_t user_forks() noexcept;
/// Differs between a process and every child forked from it.
[[nodiscard]] std::uint64_t process_generation() noexcept;

/// While one lives on this thread, its forks are infeed's own.
class OwnFork {
 public:
  OwnFork() noexcept;
  ~OwnFork();
  OwnFork(const OwnFork&) = delete;
  OwnFork& operator=(const OwnFork&) = delete;
};

}  // namespace infeed
