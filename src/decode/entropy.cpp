#include "decode/entropy.h"

namespace infeed {
namespace {

constexpr int kRunOf16 = 0xF0;
constexpr int kBroken = 64;  // coefficients: one too many

// Where the k-th coefficient of the zigzag order lies; from 64 on: in the sink.
constexpr std::uint8_t kZigzag[64 + 32] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 64, 65, 66, 67, 68, 69, 70, 71,
    72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93, 94, 95};

// By value: the reader stays in registers.
__attribute__((noinline)) LongCodes::Found find_code(std::uint64_t bits, const LongCodes& codes) noexcept {
  return codes.find(static_cast<std::uint32_t>(bits >> 48));
}

}  // namespace

BlockEnd decode_block(BitReader& in, const DcTable& dc_table, const AcTable& ac_table, std::int32_t& dc,
                      CoefficientBlock& block) noexcept {
  BitReader reader{in.next, in.bits, in.count};  // in registers
  reader.refill();
  const DcTable::Entry entry = dc_table.entries[reader.peek(kDcLookBits)];
  std::int32_t difference = entry.value;
  if (entry.bits == 0) [[unlikely]] {
    const LongCodes::Found code = find_code(reader.bits, dc_table.codes);
    if (code.length == 0) return BlockEnd::kBroken;
    reader.skip(static_cast<unsigned>(code.length));
    if (code.symbol != 0) difference = extend(reader.peek(code.symbol), code.symbol);
    reader.skip(code.symbol);
  }
  reader.skip(entry.bits);
  if (__builtin_add_overflow(dc, difference, &dc)) return BlockEnd::kBroken;
  block.values[0] = static_cast<std::int16_t>(dc);
  int k = 0;
  // What stands next: a coefficient or two, or the end of the block (true).
  const auto step = [&]() __attribute__((always_inline)) {
    const AcTable::Entry look = ac_table.entries[reader.peek(kLookBits)];
    if (look.skip0 == 0) [[unlikely]] {
      if ((look.bits0 & AcTable::kEnds) != 0) {
        reader.skip(look.bits);
        return true;
      }
      LongCodes::Found code{look.symbol, look.bits0};
      if (code.length == 0) code = find_code(reader.bits, ac_table.codes);
      if (code.length == 0) {
        k = kBroken;
        return true;
      }
      const int size = code.symbol & 15;
      reader.skip(static_cast<unsigned>(code.length));
      if (size == 0 && code.symbol != kRunOf16) return true;
      k += (code.symbol >> 4) + 1;
      if (size != 0) {
        block.values[kZigzag[k]] = static_cast<std::int16_t>(extend(reader.peek(size), size));
        reader.skip(static_cast<unsigned>(size));
      }
      reader.refill();
      return k >= 63;
    }
    k += look.skip0;
    block.values[kZigzag[k]] = look.value0;
    if (k >= 63) [[unlikely]] {
      reader.skip(look.bits0 & 0x7Fu);  // what follows is the next block's
      return true;
    }
    k += look.skip1;
    block.values[kZigzag[k]] = look.value1;
    reader.skip(look.bits);
    return (look.bits0 & AcTable::kEnds) != 0 || k >= 63;
  };
  do {
    reader.refill();  // for three look-ups and the longest code
  } while (!(step() || step() || step()));
  in.next = reader.next;  // one by one: a copy of the whole would wait for its parts
  in.bits = reader.bits;
  in.count = reader.count;
  if (k > 63) return BlockEnd::kBroken;
  return k == 0 ? BlockEnd::kFlat : BlockEnd::kFull;
}

}  // namespace infeed
