#pragma once
/// Ctrl-C keeps what is done.

#include <atomic>

namespace infeed::tools {

/// The exit status after it, as shells have it.
inline constexpr int kInterrupted = 130;

/// From now on the first Ctrl-C, or SIGTERM, only leaves a mark; the second ends the program.
void catch_interrupts();

/// The mark. It lives as long as the program.
[[nodiscard]] const std::atomic<bool>& interrupted() noexcept;

}  // namespace infeed::tools
