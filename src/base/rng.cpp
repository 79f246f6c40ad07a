#include "infeed/base/rng.h"

namespace infeed {
namespace {

// SplitMix64's finaliser: neighbouring epochs and seeds become unrelated keys.
constexpr std::uint64_t mix(std::uint64_t x) noexcept {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

constexpr std::uint32_t low(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x); }
constexpr std::uint32_t high(std::uint64_t x) noexcept { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

// key: mix(mix(seed) ^ epoch); counter: | block, 64 bits | index, 64 bits |. Distinct indices never share a block.
Philox::Philox(std::uint64_t seed, std::uint64_t epoch, std::uint64_t index) noexcept {
  const std::uint64_t key = mix(mix(seed) ^ epoch);
  key_ = {low(key), high(key)};
  counter_ = {0, 0, low(index), high(index)};
}

std::array<std::uint32_t, 4> Philox::block(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) noexcept {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {high(product1) ^ counter[1] ^ key[0], low(product1), high(product0) ^ counter[3] ^ key[1],
               low(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

std::uint32_t Philox::next_u32() noexcept {
  if (used_ == 4) {
    buffer_ = block(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return buffer_[static_cast<std::size_t>(used_++)];
}

std::uint64_t Philox::next_u64() noexcept {
  const std::uint64_t first = next_u32();
  return (first << 32) | next_u32();
}

double Philox::uniform() noexcept { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

// Lemire, "Fast random integer generation in an interval", 2019: the low half rejects what would be biased.
std::uint64_t Philox::below(std::uint64_t bound) noexcept {
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next_u64()) * bound;
  auto fraction = static_cast<std::uint64_t>(product);
  if (fraction < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (fraction < threshold) {
      product = static_cast<Wide>(next_u64()) * bound;
      fraction = static_cast<std::uint64_t>(product);
    }
  }
  return static_cast<std::uint64_t>(product >> 64);
}

}  // namespace infeed
