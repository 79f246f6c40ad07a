#pragma once
/// Huffman tables of baseline JPEG, made for speed: a look-up gives up to two finished coefficients.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace infeed {

/// A DHT segment's table: how many codes of each length 1..16, and their symbols in order of code.
struct HuffmanSpec {
  std::array<std::uint8_t, 16> counts{};
  std::array<std::uint8_t, 256> symbols{};
  bool operator==(const HuffmanSpec&) const = default;
};

/// Bits that a look-up sees. Larger tables resolve more, and leave less of the first-level cache to all else.
inline constexpr int kLookBits = 11, kDcLookBits = 9, kPassBits = 12;
/// Bits that an AC look-up moves on by, at most.
inline constexpr int kStepBits = 18;

/// The codes that no look-up resolves, by length: the decoder compares the next 16 bits.
struct LongCodes {
  std::array<std::uint32_t, 17> end{};  ///< [length]: codes of at most that length, left-aligned in 16 bits, are below
  std::array<std::int32_t, 17> offset{};  ///< [length]: symbol = symbols[(code >> (16 - length)) + offset]
  std::array<std::uint8_t, 256> symbols{};

  /// Symbol and length of the code that begins `bits` (the next 16); length 0: there is none.
  struct Found {
    std::uint8_t symbol = 0;
    int length = 0;
  };
  [[nodiscard]] Found find(std::uint32_t bits) const noexcept {
    for (int length = 1; length <= 16; ++length) {
      if (bits < end[static_cast<std::size_t>(length)]) {
        const std::int32_t at =
            static_cast<std::int32_t>(bits >> (16 - length)) + offset[static_cast<std::size_t>(length)];
        return {symbols[static_cast<std::size_t>(at)], length};
      }
    }
    return {};
  }
};

/// DC: the code alone, if it fits in kDcLookBits; the value's bits follow it.
struct DcTable {
  struct Entry {
    std::uint8_t bits = 0;  ///< code and value; 0: not resolved, ask `codes`
    std::uint8_t code_bits = 0;
    std::int16_t if_negative = 0;  ///< added to the value's bits where the first of them is 0
  };
  std::array<Entry, std::size_t{1} << kDcLookBits> entries{};
  LongCodes codes;
};

/// AC: what the next kLookBits bits say. Places are counted from the coefficient decoded last, in zigzag order.
///   one coefficient  at skip0 = advance, value0 plus the rest_bits bits that stand behind head_bits
///   two              the second, value1, at advance; the first takes head_bits
///   kEnds            in advance: the block ends behind the first, which takes head_bits
///   kAlone           for skip0 and advance: no coefficient, the block ends
///   kAsk             for advance: a longer code, or a value of many bits; ask `codes`
/// pass_*, if has_pass: for blocks of which nothing is stored: all codes that the next kPassBits bits hold, with their
/// values' bits.
struct AcTable {
  static constexpr std::uint8_t kAlone = 64, kEnds = 128, kAsk = 255;
  struct Entry {
    std::int16_t value0 = 0, value1 = 0;
    std::uint8_t skip0 = 0, advance = kAsk;
    std::uint8_t head_bits = 0, rest_bits = 0;
  };
  static_assert(sizeof(Entry) == 8);
  std::array<std::uint8_t, std::size_t{1} << kLookBits>
      bits{};  ///< that all of an entry takes; apart, to be had sooner
  std::array<Entry, std::size_t{1} << kLookBits> entries{};
  bool has_pass = false;
  std::array<std::uint8_t, std::size_t{1} << kPassBits> pass_bits{};
  std::array<std::uint8_t, std::size_t{1} << kPassBits> pass_advance{};  ///< with kEnds, or kAsk
  LongCodes codes;
};

/// The value of `size` bits `raw` (T.81, F.2.2.1, EXTEND).
[[nodiscard]] constexpr std::int32_t extend(std::uint32_t raw, int size) noexcept {
  if (size == 0) return 0;
  const auto value = static_cast<std::int32_t>(raw);
  return value < (1 << (size - 1)) ? value - (1 << size) + 1 : value;
}

/// Null where the counts are no prefix code, or a DC symbol is above 15: libjpeg has words for that.
[[nodiscard]] std::unique_ptr<DcTable> make_dc_table(const HuffmanSpec& spec);
[[nodiscard]] std::unique_ptr<AcTable> make_ac_table(const HuffmanSpec& spec);
void add_pass(AcTable& table, const HuffmanSpec& spec);

/// The tables of late, by their DHT bytes: most files of a data set come with the same four. One owner, one thread.
class HuffmanCache {
 public:
  /// Null as above. Valid until the next kKept other tables were asked for. A table that only one picture asks for,
  /// since it brings its own, comes without pass_*.
  [[nodiscard]] const DcTable* dc(const HuffmanSpec& spec);
  [[nodiscard]] const AcTable* ac(const HuffmanSpec& spec);

 private:
  static constexpr std::size_t kKept = 8;    // a picture has at most four of each kind
  static constexpr int kTimesUntilPass = 4;  // each component asks
  template <typename Table>
  struct Kept {
    HuffmanSpec spec;
    std::unique_ptr<Table> table;
    std::uint64_t used = 0;  ///< when last; 0: never
    int times_asked = 0;
  };
  template <typename Table, typename Make>
  Kept<Table>* find(std::array<Kept<Table>, kKept>& kept, const HuffmanSpec& spec, const Make& make);

  std::array<Kept<DcTable>, kKept> dc_;
  std::array<Kept<AcTable>, kKept> ac_;
  std::uint64_t clock_ = 0;
};

}  // namespace infeed
