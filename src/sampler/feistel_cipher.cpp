#include "sampler/feistel_cipher.h"

#include <algorithm>
#include <bit>

#include "infeed/base/rng.h"

namespace infeed {
namespace {

constexpr std::size_t kBatch = 512;                   // values per pass: they stay in the L1 cache
constexpr int kMinBits = 8;                           // narrower halves would allow too few permutations
constexpr std::uint64_t kStream = ~std::uint64_t{0};  // the Philox index that no sample has

using Round = FeistelCipher::Round;
using Rounds = std::array<Round, FeistelCipher::kRounds>;

[[gnu::always_inline]] inline std::uint32_t half_round(std::uint32_t x, const Round& round) noexcept {
  std::uint32_t h = (x ^ round.salt) * round.factor;
  h ^= h >> 15;
  return h * 0x2C1B3C6DU;
}

// Halves in arrays of their own: the rounds then run in vectors of 32-bit lanes.
[[gnu::always_inline]] inline void encrypt_all(std::int64_t* values, std::size_t count, const Rounds& rounds,
                                               int left_bits, int right_bits) noexcept {
  const std::uint64_t right_mask = (std::uint64_t{1} << right_bits) - 1;
  const int left_shift = 32 - left_bits;
  const int right_shift = 32 - right_bits;
  std::array<std::uint32_t, kBatch> left;
  std::array<std::uint32_t, kBatch> right;
  for (std::size_t i = 0; i < count; ++i) {
    left[i] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(values[i]) >> right_bits);
    right[i] = static_cast<std::uint32_t>(static_cast<std::uint64_t>(values[i]) & right_mask);
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint32_t l = left[i];
    std::uint32_t r = right[i];
#pragma GCC unroll 8
    for (std::size_t k = 0; k < rounds.size(); k += 2) {
      l ^= half_round(r, rounds[k]) >> left_shift;
      r ^= half_round(l, rounds[k + 1]) >> right_shift;
    }
    left[i] = l;
    right[i] = r;
  }
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<std::int64_t>((static_cast<std::uint64_t>(left[i]) << right_bits) | right[i]);
}

void encrypt_portable(std::int64_t* values, std::size_t count, const Rounds& rounds, int left, int right) noexcept {
  encrypt_all(values, count, rounds, left, right);
}

#ifdef __x86_64__
[[gnu::target("avx2")]] void encrypt_avx2(std::int64_t* values, std::size_t count, const Rounds& rounds, int left,
                                          int right) noexcept {
  encrypt_all(values, count, rounds, left, right);
}
#endif

}  // namespace

FeistelCipher::FeistelCipher(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) noexcept : size_(size) {
  const auto last = static_cast<std::uint64_t>(std::max<std::int64_t>(size - 1, 0));
  const int bits = std::max(static_cast<int>(std::bit_width(last)), kMinBits);
  left_bits_ = bits / 2;
  right_bits_ = bits - left_bits_;
  Philox philox(seed, epoch, kStream);
  for (Round& round : rounds_) round = {philox.next_u32(), philox.next_u32() | 1U};
}

void FeistelCipher::permute(std::span<std::int64_t> values) const noexcept {
  while (!values.empty()) {
    const auto part = values.first(std::min(values.size(), kBatch));
    encrypt(part);
    walk(part);
    values = values.subspan(part.size());
  }
}

void FeistelCipher::encrypt(std::span<std::int64_t> values) const noexcept {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2"))
    return encrypt_avx2(values.data(), values.size(), rounds_, left_bits_, right_bits_);
#endif
  encrypt_portable(values.data(), values.size(), rounds_, left_bits_, right_bits_);
}

// Gathers what lies outside, permutes it, puts it back, until nothing does.
void FeistelCipher::walk(std::span<std::int64_t> values) const noexcept {
  std::array<std::uint16_t, kBatch> outside;
  std::array<std::int64_t, kBatch> gathered;
  std::size_t count = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    outside[count] = static_cast<std::uint16_t>(i);
    gathered[count] = values[i];
    count += values[i] >= size_ ? 1 : 0;
  }
  while (count > 0) {
    encrypt(std::span(gathered).first(count));
    std::size_t left = 0;
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t value = gathered[k];
      const std::uint16_t at = outside[k];
      values[at] = value;
      outside[left] = at;
      gathered[left] = value;
      left += value >= size_ ? 1 : 0;
    }
    count = left;
  }
}

}  // namespace infeed
