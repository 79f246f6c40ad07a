#pragma once
/// The keyed permutation behind FeistelSampler.

#include <array>
#include <cstdint>
#include <span>

namespace infeed {

/// A permutation of [0, size), size < 2^62, fixed by (seed, epoch).
///
/// A number of `left + right` bits, the fewest that hold size - 1 (8 at least), is two halves | left | right |. Each of
/// 4 rounds mixes both: left ^= f(right), right ^= g(left), with f and g keyed anew: 8 Feistel rounds in all. A result
/// outside [0, size) is permuted again until it falls inside (cycle walking), less than once more per number on average
/// above 256. Threads: any; it is constant after construction.
class FeistelCipher {
 public:
  FeistelCipher(std::int64_t size, std::uint64_t seed, std::uint64_t epoch) noexcept;

  /// Replaces each value, in [0, size), by its image.
  void permute(std::span<std::int64_t> values) const noexcept;

  static constexpr int kRounds = 8;
  /// f(x) = the highest bits of mix((x ^ salt) * factor).
  struct Round {
    std::uint32_t salt;
    std::uint32_t factor;  // odd
  };

 private:
  void encrypt(std::span<std::int64_t> values) const noexcept;
  void walk(std::span<std::int64_t> values) const noexcept;

  std::int64_t size_;
  int left_bits_;
  int right_bits_;
  std::array<Round, kRounds> rounds_;
};

}  // namespace infeed
