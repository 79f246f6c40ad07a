#pragma once
/// A futex in shared memory that many may wait on: a word that only grows, and a mask of who sleeps.

#include <atomic>
#include <cstdint>

namespace infeed {

/// Between two looks of a spin: lets the core's other thread run.
inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Zeroed memory is a valid start.
struct BellWords {
  static constexpr int kMaxSleepers = 256;

  std::atomic<std::uint32_t> word;
  /// One bit a sleeper: a counter would leak at a kill, a bit for all would lose a wake-up.
  alignas(128) std::atomic<std::uint64_t> sleepers[kMaxSleepers / 64];
};

/// How a ringer and a sleeper cannot miss each other (Dekker, all seq_cst):
///   ringer:  word += 1 [rung];      read sleepers -> some: FUTEX_WAKE
///   sleeper: sleepers |= own bit;   FUTEX_WAIT while word == seen (the kernel compares)
/// Whoever comes second sees the other. Read value() before looking for work, pass it to wait().
///
/// Death: a killed sleeper leaves its bit, which costs system calls until forget(); nothing else.
class Doorbell {
 public:
  static constexpr int kMaxSpinUs = 20;  ///< beyond it spinning costs others more than a sleep costs us

  explicit Doorbell(BellWords& words) noexcept : words_(words) {}

  [[nodiscard]] std::uint32_t value() const noexcept;
  /// Wakes up to `wanted` sleepers; spinning ones see the word.
  void ring(int wanted) noexcept;
  void ring_all() noexcept;
  /// Wakes `sleeper`, and others only where they share its bit of 32.
  void ring_one(int sleeper) noexcept;
  /// Returns when the word is not `seen` (true), after `timeout_ms`, or at a signal. May return early: look again.
  bool wait(int sleeper, std::uint32_t seen, int spin_us, int timeout_ms) noexcept;
  /// How many sleep, or are about to or were rung and do not run yet.
  [[nodiscard]] int sleepers() const noexcept;
  /// Clears the bit of a dead sleeper.
  void forget(int sleeper) noexcept;

 private:
  [[nodiscard]] bool anyone_sleeps() const noexcept;
  void wake(int wanted, std::uint32_t who) noexcept;
  BellWords& words_;
};

}  // namespace infeed
