#pragma once
/// Baseline Huffman decoding of blocks (T.81, F.2.2). No SIMD, no branch on the input's bytes but by look-up.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "decode/huffman_table.h"

namespace infeed {

/// 64 coefficients in rows of 8, and a sink for those that a damaged block puts behind its end.
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
  void skip(unsigned n) noexcept {
    bits <<= n;
    count -= n;
  }
  /// Bits used since `base`.
  [[nodiscard]] std::size_t position(const std::uint8_t* base) const noexcept {
    return static_cast<std::size_t>(next - base) * 8 - count;
  }
};

/// What a block came to.
enum class BlockEnd : std::uint8_t {
  kFlat,   ///< DC alone
  kFull,   ///< has AC coefficients
  kBroken  ///< no such code, or more than 64 coefficients
};

/// Decodes one block into zeroed `block`; `dc` is the component's running DC value. Coefficients wrap to 16 bits as
/// libjpeg's do.
[[nodiscard]] BlockEnd decode_block(BitReader& reader, const DcTable& dc_table, const AcTable& ac_table,
                                    std::int32_t& dc, CoefficientBlock& block) noexcept;

}  // namespace infeed
