#pragma once
/// One clock for all processes of a loader.

#include <chrono>
#include <cstdint>

namespace infeed {

/// CLOCK_MONOTONIC, nanoseconds: comparable between the processes of a machine.
[[nodiscard]] inline std::uint64_t monotonic_ns(
    std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now()) noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count());
}

}  // namespace infeed
