#include "decode/entropy.h"

#include <array>

// Three look-ups share a refill, since none moves on by more than kStepBits. From look-up to look-up only the bits' shift
// is waited for; places and values follow beside. All states stay in registers over the blocks of a call.

namespace infeed {
namespace {

constexpr int kRunOf16 = 0xF0;
constexpr std::uint32_t kLast = 63;  // the last coefficient's place in zigzag order

// Where the k-th coefficient of the zigzag order lies; from 64 on: in the sink.
constexpr std::array<std::uint8_t, 64 + 256> kPlaces = [] {
  std::array<std::uint8_t, 64 + 256> places{0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                            12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                            35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                            58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};
  for (std::size_t k = 64; k < places.size(); ++k) places[k] = 64;
  return places;
}();

/// How far a block's AC coefficients are decoded.
enum class Progress : std::uint8_t { kMore, kEnded, kBroken };

// By value: the reader stays in registers.
[[gnu::noinline]] LongCodes::Found find_code(std::uint64_t bits, const LongCodes& codes) noexcept {
  return codes.find(static_cast<std::uint32_t>(bits >> 48));
}

[[gnu::always_inline]] inline bool decode_dc(BitReader& reader, const DcTable& table, std::int32_t& dc) noexcept {
  const DcTable::Entry entry = table.entries[reader.peek(kDcLookBits)];
  if (entry.bits == 0) [[unlikely]] {
    const LongCodes::Found code = find_code(reader.bits, table.codes);
    if (code.length == 0) return false;
    reader.skip(static_cast<unsigned>(code.length));
    const std::int32_t difference = code.symbol == 0 ? 0 : extend(reader.peek(code.symbol), code.symbol);
    reader.skip(code.symbol);
    reader.refill();
    return !__builtin_add_overflow(dc, difference, &dc);
  }
  const auto is_negative = ~static_cast<std::int64_t>(reader.bits << entry.code_bits) >> 63;  // all ones, or 0
  const unsigned size = entry.bits - entry.code_bits;
  const std::int32_t difference =
      reader.peek_behind(entry.code_bits, size) + static_cast<std::int32_t>(is_negative & entry.if_negative);
  reader.skip(entry.bits);
  return !__builtin_add_overflow(dc, difference, &dc);
}

// A code that no look-up resolves.
[[gnu::always_inline]] inline Progress decode_long(BitReader& reader, const AcTable& table, std::int16_t* values,
                                                   std::uint32_t& k) noexcept {
  reader.refill();
  const LongCodes::Found code = find_code(reader.bits, table.codes);
  if (code.length == 0) return Progress::kBroken;
  const int size = code.symbol & 15;
  reader.skip(static_cast<unsigned>(code.length));
  if (size == 0 && code.symbol != kRunOf16) return Progress::kEnded;
  k += (code.symbol >> 4) + 1U;
  if (size != 0) values[kPlaces[k]] = static_cast<std::int16_t>(extend(reader.peek(size), size));
  reader.skip(static_cast<unsigned>(size));
  if (k > kLast) return Progress::kBroken;
  return k == kLast ? Progress::kEnded : Progress::kMore;
}

/// From the `k`-th coefficient on; at least kStepBits bits are there. False: broken.
[[gnu::always_inline]] inline bool decode_ac(BitReader& reader, const AcTable& table, std::uint32_t& k,
                                             std::int16_t* values) noexcept {
  AcTable::Entry look;
  unsigned bits = 0;
  const auto store = [&](std::uint32_t first, std::uint32_t second) __attribute__((always_inline)) {
    values[kPlaces[second]] = look.value1;  // before the first, which is at the same place where there is no second
    values[kPlaces[first]] =
        static_cast<std::int16_t>(look.value0 + reader.peek_behind(look.head_bits, look.rest_bits));
  };
  // True: the block ends, or the table does not know.
  const auto step = [&]() __attribute__((always_inline)) {
    const std::uint32_t at = reader.peek(kLookBits);
    bits = table.bits[at];
    look = table.entries[at];
    if (k + look.advance >= kLast) return true;
    store(k + look.skip0, k + look.advance);
    k += look.advance;
    reader.skip(bits);
    return false;
  };
  bool stops = step();
  for (;;) {
    while (!stops) {
      reader.refill();
      stops = step() || step() || step();  // NOLINT(misc-redundant-expression): each moves on
    }
    if (look.advance == AcTable::kAsk) [[unlikely]] {
      const Progress progress = decode_long(reader, table, values, k);
      if (progress != Progress::kMore) return progress == Progress::kEnded;
      stops = false;
      continue;
    }
    const std::uint32_t first = k + look.skip0, second = k + look.advance;
    store(first, second);
    // What follows the last coefficient is the next block's.
    reader.skip(first >= kLast ? look.head_bits + look.rest_bits : bits);
    k = first;
    if (look.skip0 >= AcTable::kAlone || first == kLast) return true;
    return first < kLast && (look.advance >= AcTable::kEnds || second == kLast);
  }
}

/// Moves over AC coefficients. True: the block has ended; false: near its end, or at a code that the table does not
/// know.
[[gnu::always_inline]] inline bool pass_ac(BitReader& reader, const AcTable& table, std::uint32_t& k) noexcept {
  std::uint32_t next = 0;
  unsigned bits = 0;
  const auto step = [&]() __attribute__((always_inline)) {
    const std::uint32_t at = reader.peek(kPassBits);
    bits = table.pass_bits[at];
    next = k + table.pass_advance[at];
    if (next >= kLast) return true;
    k = next;
    reader.skip(bits);
    return false;
  };
  do {
    reader.refill();
  } while (!(step() || step() || step()));  // NOLINT(misc-redundant-expression): each moves on
  if (next < AcTable::kEnds || next >= AcTable::kEnds + kLast) return false;
  reader.skip(bits);
  return true;
}

}  // namespace

bool decode_blocks(BitReader& in, std::span<BlockTask> tasks) noexcept {
  BitReader reader{in.next, in.bits, in.count};  // in registers
  CoefficientBlock unused;
  for (BlockTask& task : tasks) {
    reader.refill();
    if (!decode_dc(reader, *task.dc_table, *task.dc)) return false;
    std::uint32_t k = 0;
    if (task.block == nullptr) {
      if (task.ac_table->has_pass && pass_ac(reader, *task.ac_table, k)) continue;
      if (!decode_ac(reader, *task.ac_table, k, unused.values)) return false;
      continue;
    }
    task.block->values[0] = static_cast<std::int16_t>(*task.dc);
    if (!decode_ac(reader, *task.ac_table, k, task.block->values)) return false;
    task.flat = k == 0 || k == AcTable::kAlone;
  }
  in.next = reader.next;  // one by one: a copy of the whole would wait for its parts
  in.bits = reader.bits;
  in.count = reader.count;
  return true;
}

}  // namespace infeed
