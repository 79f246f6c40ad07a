#include "ring/doorbell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>

#include "ring/steps.h"

namespace infeed {
namespace {

constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

/// One of 32 classes, so that a wake-up can be addressed.
std::uint32_t class_of(int sleeper) { return std::uint32_t{1} << (sleeper % 32); }

/// The futex of other processes too: no FUTEX_PRIVATE_FLAG. The kernel reads the word itself.
long futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* until,
           std::uint32_t who) {
  return syscall(SYS_futex, &word, operation, value, until, nullptr, who);
}

bool spin(const std::atomic<std::uint32_t>& word, std::uint32_t seen, int spin_us) {
  if (spin_us <= 0) return false;
  const std::int64_t end = now_ns() + std::int64_t{1000} * std::min(spin_us, Doorbell::kMaxSpinUs);
  do {
    for (int i = 0; i < 16; ++i) {
      if (word.load(std::memory_order_acquire) != seen) return true;  // pairs with [rung]
      cpu_relax();
    }
  } while (now_ns() < end);
  return false;
}

}  // namespace

std::uint32_t Doorbell::value() const noexcept {
  return words_.word.load(std::memory_order_seq_cst);
}  // pairs with [rung]

void Doorbell::ring(int wanted) noexcept { wake(wanted, FUTEX_BITSET_MATCH_ANY); }
void Doorbell::ring_all() noexcept { wake(INT_MAX, FUTEX_BITSET_MATCH_ANY); }
void Doorbell::ring_one(int sleeper) noexcept { wake(INT_MAX, class_of(sleeper)); }

void Doorbell::wake(int wanted, std::uint32_t who) noexcept {
  words_.word.fetch_add(1, std::memory_order_seq_cst);  // [rung]
  if (wanted > 0 && anyone_sleeps())
    futex(words_.word, FUTEX_WAKE_BITSET, static_cast<std::uint32_t>(wanted), nullptr, who);
}

bool Doorbell::anyone_sleeps() const noexcept {
  return std::any_of(std::begin(words_.sleepers), std::end(words_.sleepers),
                     [](const auto& mask) { return mask.load(std::memory_order_seq_cst) != 0; });
}

int Doorbell::sleepers() const noexcept {
  int count = 0;
  for (const auto& mask : words_.sleepers) count += std::popcount(mask.load(std::memory_order_relaxed));
  return count;
}

bool Doorbell::wait(int sleeper, std::uint32_t seen, int spin_us, int timeout_ms) noexcept {
  if (spin(words_.word, seen, spin_us)) return true;
  if (value() != seen) return true;
  if (timeout_ms <= 0) return false;
  const std::int64_t end = now_ns() + std::int64_t{1'000'000} * timeout_ms;
  const timespec until{end / kNsPerSecond, end % kNsPerSecond};
  auto& mask = words_.sleepers[sleeper / 64];
  const std::uint64_t bit = std::uint64_t{1} << (sleeper % 64);
  mask.fetch_or(bit, std::memory_order_seq_cst);
  ring_step(RingStep::kBeforeSleep);
  futex(words_.word, FUTEX_WAIT_BITSET, seen, &until, class_of(sleeper));  // absolute, CLOCK_MONOTONIC
  ring_step(RingStep::kWoken);
  mask.fetch_and(~bit, std::memory_order_relaxed);
  return value() != seen;
}

void Doorbell::forget(int sleeper) noexcept {
  words_.sleepers[sleeper / 64].fetch_and(~(std::uint64_t{1} << (sleeper % 64)), std::memory_order_relaxed);
}

}  // namespace infeed
