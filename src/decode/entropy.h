#pragma once
/// Baseline Huffman decoding of blocks (T.81, F.2.2). No SIMD; the way from one code to the next is a look-up and two
/// shifts, and a branch goes another way about once a block.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "decode/huffman_table.h"

namespace infeed {

/// 64 coefficients in rows of 8, and a sink for what belongs nowhere.
struct alignas(64) CoefficientBlock {
  std::int16_t values[64 + 32];
};

/// The next bits, most significant first. Reads up to 8 bytes ahead of what it used.
struct BitReader {
  const std::uint8_t* next = nullptr;
  std::uint64_t bits = 0;  ///< left-aligned; those behind `count` are the next ones too, or 0
  std::uint64_t count = 0;

  /// At least 56 bits are there after it.
  void refill() noexcept {
    std::uint64_t word;
    std::memcpy(&word, next, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    bits |= word >> count;
    next += (63 - count) >> 3;
    count |= 56;
  }
  /// The next `n` bits, 1 to 32, left where they are.
  [[nodiscard]] std::uint32_t peek(int n) const noexcept { return static_cast<std::uint32_t>(bits >> (64 - n)); }
  /// `n` bits, 0 to 32, behind the next `skipped`.
  [[nodiscard]] std::int32_t peek_behind(unsigned skipped, unsigned n) const noexcept {
    return static_cast<std::int32_t>(bits << skipped >> 1 >> (63 - n));
  }
  void skip(unsigned n) noexcept {
    bits <<= n;
    count -= n;
  }
  /// Bits used since `base`.
  [[nodiscard]] std::size_t position(const std::uint8_t* base) const noexcept {
    return static_cast<std::size_t>(next - base) * 8 - count;
  }
};

/// A block to be decoded.
struct BlockTask {
  const DcTable* dc_table = nullptr;
  const AcTable* ac_table = nullptr;
  std::int32_t* dc = nullptr;         ///< the component's running DC value
  CoefficientBlock* block = nullptr;  ///< zeroed; null: only the DC value is wanted, at half the time
  bool flat = false;                  ///< result: DC alone
};

/// Decodes the blocks of `tasks` in turn. Coefficients wrap to 16 bits as libjpeg's do. False: no such code, or more
/// than 64 coefficients; `reader` and the blocks are then of no use.
[[nodiscard]] bool decode_blocks(BitReader& reader, std::span<BlockTask> tasks) noexcept;

}  // namespace infeed
