#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/huge_pages.h"
#include "infeed/base/error.h"
#include "infeed/base/rng.h"

// mt19937 (Matsumoto, Nishimura, 1998), seeded as init_genrand does. A draw is one tempered word of state_; next_
// points at the word that comes next, 624 where the state must be stepped first.

namespace infeed {
namespace {

constexpr std::size_t kWords = 624;
constexpr std::size_t kShift = 397;

// torch.randperm draws 32 bits per item below this size and 64 from it on.
constexpr std::int64_t kSmallPermutation = std::numeric_limits<std::uint32_t>::max() / 20;
// torch draws 64 bits for integer ranges of at least this size.
constexpr std::uint64_t kWideRange = std::uint64_t{1} << 28;

constexpr std::size_t kChunk =
    4096;                           // draws per pass of a shuffle: they and their targets stay in the L1 and L2 caches
constexpr std::size_t kAhead = 48;  // items between the prefetch of a target and its swap

constexpr std::uint32_t temper(std::uint32_t y) noexcept {
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680U;
  y ^= (y << 15) & 0xEFC60000U;
  return y ^ (y >> 18);
}

constexpr std::uint32_t twist(std::uint32_t a, std::uint32_t b) noexcept {
  return (((a & 0x80000000U) | (b & 0x7FFFFFFFU)) >> 1) ^ ((0U - (b & 1U)) & 0x9908B0DFU);
}

constexpr std::uint64_t width(std::int64_t low, std::int64_t high) noexcept {
  return static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
}

// targets[k] = first + k + draws[k] % (n - first - k), for n - first - k >= 2. The quotient of two 32-bit numbers in
// double is exact after truncation (its error is below 1 / divisor), and vectorises where an integer division does not.
void to_targets(std::span<const std::uint32_t> draws, std::uint32_t first, std::uint32_t n,
                std::uint32_t* targets) noexcept {
  for (std::size_t k = 0; k < draws.size(); ++k) {
    const std::uint32_t at = first + static_cast<std::uint32_t>(k);
    const std::uint32_t divisor = n - at;
    const auto quotient = static_cast<std::int32_t>(static_cast<double>(draws[k]) / static_cast<double>(divisor));
    targets[k] = at + draws[k] - static_cast<std::uint32_t>(quotient) * divisor;
  }
}

// Swaps items[first + k] with items[targets[k]], in order.
template <typename Index>
void swap_all(Index* items, std::size_t first, std::span<const std::uint32_t> targets) noexcept {
  const std::size_t count = targets.size();
  for (std::size_t k = 0; k < count; ++k) {
    __builtin_prefetch(items + targets[std::min(k + kAhead, count - 1)], 1);
    std::swap(items[first + k], items[targets[k]]);
  }
}

}  // namespace

TorchGenerator::TorchGenerator(std::uint64_t seed) { manual_seed(seed); }

void TorchGenerator::manual_seed(std::uint64_t seed) {
  seed_ = seed;
  state_[0] = static_cast<std::uint32_t>(seed);
  for (std::uint32_t i = 1; i < kWords; ++i) state_[i] = 1812433253U * (state_[i - 1] ^ (state_[i - 1] >> 30)) + i;
  next_ = kWords;
}

// Three loops, so that each reads at a fixed distance from what it writes: the compiler vectorises them.
void TorchGenerator::refill() noexcept {
  std::uint32_t* const s = state_.data();
  for (std::size_t i = 0; i < kWords - kShift; ++i) s[i] = s[i + kShift] ^ twist(s[i], s[i + 1]);
  for (std::size_t i = kWords - kShift; i < kWords - 1; ++i) s[i] = s[i + kShift - kWords] ^ twist(s[i], s[i + 1]);
  s[kWords - 1] = s[kShift - 1] ^ twist(s[kWords - 1], s[0]);
  next_ = 0;
}

std::uint32_t TorchGenerator::random() noexcept {
  if (next_ == kWords) refill();
  return temper(state_[static_cast<std::size_t>(next_++)]);
}

std::uint64_t TorchGenerator::random64() noexcept {
  const std::uint64_t high = random();
  return (high << 32) | random();
}

double TorchGenerator::uniform_double() noexcept {
  return static_cast<double>(random64() & ((std::uint64_t{1} << 53) - 1)) * 0x1p-53;
}

float TorchGenerator::uniform_float() noexcept {
  return static_cast<float>(random() & ((std::uint32_t{1} << 24) - 1)) * 0x1p-24F;
}

void TorchGenerator::fill(std::span<std::uint32_t> out) noexcept {
  while (!out.empty()) {
    if (next_ == kWords) refill();
    const std::size_t count = std::min(out.size(), kWords - static_cast<std::size_t>(next_));
    const std::uint32_t* const words = state_.data() + next_;
    for (std::size_t i = 0; i < count; ++i) out[i] = temper(words[i]);
    next_ += static_cast<int>(count);
    out = out.subspan(count);
  }
}

void TorchGenerator::discard(std::uint64_t count) noexcept {
  while (count > 0) {
    if (next_ == kWords) refill();
    const std::uint64_t step = std::min<std::uint64_t>(count, kWords - static_cast<std::uint64_t>(next_));
    next_ += static_cast<int>(step);
    count -= step;
  }
}

template <typename Index>
void TorchGenerator::shuffle(std::span<Index> out) noexcept {
  if (static_cast<std::int64_t>(out.size()) >= kSmallPermutation)
    shuffle_inside_out(out);
  else
    shuffle_forward(out);
}

// Item i swaps with one of those from i on.
template <typename Index>
void TorchGenerator::shuffle_forward(std::span<Index> out) noexcept {
  std::iota(out.begin(), out.end(), Index{0});
  const std::size_t n = out.size();
  std::array<std::uint32_t, kChunk> draws;
  std::array<std::uint32_t, kChunk> targets;
  for (std::size_t first = 0; first + 1 < n; first += kChunk) {
    const std::span<std::uint32_t> part(draws.data(), std::min(kChunk, n - 1 - first));
    fill(part);
    to_targets(part, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(n), targets.data());
    swap_all(out.data(), first, std::span<const std::uint32_t>(targets.data(), part.size()));
  }
}

// Item i enters at a random place among the i + 1 first; what was there moves to the end.
template <typename Index>
void TorchGenerator::shuffle_inside_out(std::span<Index> out) noexcept {
  std::array<std::size_t, kChunk> targets;
  for (std::size_t first = 0; first < out.size(); first += kChunk) {
    const std::size_t count = std::min(kChunk, out.size() - first);
    for (std::size_t k = 0; k < count; ++k) {
      targets[k] = static_cast<std::size_t>(random64() % (first + k + 1));
      __builtin_prefetch(out.data() + targets[k], 1);
    }
    for (std::size_t k = 0; k < count; ++k) {
      out[first + k] = out[targets[k]];
      out[targets[k]] = static_cast<Index>(first + k);
    }
  }
}

std::vector<std::int64_t> TorchGenerator::randperm(std::int64_t n) {
  if (n < 0) throw ConfigError(fmt::format("randperm of {} items: the number must not be negative.", n));
  std::vector<std::int64_t> out;
  out.reserve(static_cast<std::size_t>(n));
  advise_huge_pages(out.data(), out.capacity() * sizeof(std::int64_t));
  out.resize(static_cast<std::size_t>(n));
  randperm(std::span(out));
  return out;
}

void TorchGenerator::randperm(std::span<std::int64_t> out) noexcept { shuffle(out); }

void TorchGenerator::randperm(std::span<std::int32_t> out) {
  if (out.size() > std::size_t{1} << 31)
    throw ConfigError(fmt::format("randperm of {} items does not fit int32; use int64.", out.size()));
  shuffle(out);
}

void TorchGenerator::discard_randperm(std::int64_t n) noexcept {
  if (n < 1) return;
  const auto count = static_cast<std::uint64_t>(n);
  discard(n >= kSmallPermutation ? 2 * count : count - 1);
}

std::int64_t TorchGenerator::random_int64() {
  return static_cast<std::int64_t>(random64() & (std::numeric_limits<std::uint64_t>::max() >> 1));
}

void TorchGenerator::randint(std::int64_t low, std::int64_t high, std::span<std::int64_t> out) {
  if (low >= high) throw ConfigError(fmt::format("randint from {} to {}: the upper bound must be larger.", low, high));
  const std::uint64_t range = width(low, high);
  for (std::int64_t& value : out) {
    const std::uint64_t draw = range >= kWideRange ? random64() : random();
    value = static_cast<std::int64_t>(draw % range + static_cast<std::uint64_t>(low));
  }
}

std::vector<std::int64_t> TorchGenerator::randint(std::int64_t low, std::int64_t high, std::int64_t n) {
  if (n < 0) throw ConfigError(fmt::format("randint of {} numbers: the number must not be negative.", n));
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  randint(low, high, std::span(out));
  return out;
}

void TorchGenerator::discard_randint(std::int64_t low, std::int64_t high, std::uint64_t n) noexcept {
  discard(width(low, high) >= kWideRange ? 2 * n : n);
}

}  // namespace infeed
