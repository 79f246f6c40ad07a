#include "decode/huffman_table.h"

#include <algorithm>

namespace infeed {
namespace {

constexpr int kMaxDcSize = 15;
constexpr int kRunOf16 = 0xF0;  // sixteen zeros

// T.81, C.2: codes of one length are consecutive, and the next length goes on at twice the next code.
bool fill_codes(const HuffmanSpec& spec, LongCodes& codes) {
  codes.symbols = spec.symbols;
  std::uint32_t code = 0;
  std::int32_t symbol = 0;
  for (int length = 1; length <= 16; ++length) {
    const auto at = static_cast<std::size_t>(length);
    const std::uint32_t count = spec.counts[at - 1];
    codes.offset[at] = symbol - static_cast<std::int32_t>(code);
    code += count;
    symbol += static_cast<std::int32_t>(count);
    if (code >= (std::uint32_t{1} << length) || symbol > 256) return false;  // a code of ones alone is none
    codes.end[at] = code << (16 - length);
    code <<= 1;
  }
  return true;
}

/// The code that begins a word of kPassBits bits; length 0: none ends in it.
struct Code {
  std::uint8_t symbol = 0, length = 0;
};
using Codes = std::array<Code, std::size_t{1} << kPassBits>;

Codes codes_by_bits(const HuffmanSpec& spec) {
  Codes codes{};
  std::size_t at = 0, symbol = 0;
  for (std::uint8_t length = 1; length <= kPassBits; ++length) {
    for (unsigned i = spec.counts[length - 1U]; i > 0; --i) {
      const std::size_t end = at + (std::size_t{1} << (kPassBits - length));
      std::fill(codes.begin() + static_cast<std::ptrdiff_t>(at), codes.begin() + static_cast<std::ptrdiff_t>(end),
                Code{spec.symbols[symbol++], length});
      at = end;
    }
  }
  return codes;
}

/// What begins behind `from` of the `width` bits `looked`.
Code code_at(const Codes& codes, std::uint32_t looked, int width, int from) {
  const Code code = codes[looked << (kPassBits - width + from) & (codes.size() - 1)];
  return from + code.length <= width ? code : Code{};
}

/// A symbol and its value, if they are whole in the bits that are looked at.
struct Head {
  std::uint8_t symbol = 0;
  std::int32_t value = 0;
  int bits = 0;  ///< 0: not whole
};

Head read_head(const Codes& codes, std::uint32_t looked, int from) {
  const Code code = code_at(codes, looked, kLookBits, from);
  const int size = code.symbol & 15, end = from + code.length + size;
  if (code.length == 0 || end > kLookBits) return {};
  const std::uint32_t raw = looked >> (kLookBits - end) & ((std::uint32_t{1} << size) - 1);
  return {code.symbol, extend(raw, size), code.length + size};
}

bool is_end(std::uint8_t symbol) { return (symbol & 15) == 0 && symbol != kRunOf16; }
bool is_end(const Head& head) { return head.bits > 0 && is_end(head.symbol); }
/// A run of 16 zeros is one of value 0.
bool is_coefficient(const Head& head) { return head.bits > 0 && !is_end(head.symbol); }
std::uint8_t skip_of(std::uint8_t symbol) { return static_cast<std::uint8_t>((symbol >> 4) + 1); }

/// A single coefficient whose code and sign are in sight, but not all of its value.
AcTable::Entry make_partial(Code code, std::uint32_t looked) {
  const int size = code.symbol & 15;
  const bool is_known = code.length > 0 && code.length < kLookBits && size > 0 && code.length + size <= kStepBits;
  if (!is_known) return {};
  const bool is_positive = (looked >> (kLookBits - 1 - code.length) & 1) != 0;
  AcTable::Entry entry;
  entry.value0 = static_cast<std::int16_t>(is_positive ? 1 << (size - 1) : 1 - (1 << size));
  entry.skip0 = entry.advance = skip_of(code.symbol);
  entry.head_bits = static_cast<std::uint8_t>(code.length + 1);
  entry.rest_bits = static_cast<std::uint8_t>(size - 1);
  return entry;
}

AcTable::Entry make_end(const Head& end) {
  AcTable::Entry entry;
  entry.skip0 = entry.advance = AcTable::kAlone;
  entry.head_bits = static_cast<std::uint8_t>(end.bits);
  return entry;
}

void make_entry(AcTable& table, const Codes& codes, std::uint32_t looked) {
  AcTable::Entry& entry = table.entries[looked];
  const Head first = read_head(codes, looked, 0);
  int bits = first.bits;
  if (is_end(first)) {
    entry = make_end(first);
  } else if (!is_coefficient(first)) {
    entry = make_partial(code_at(codes, looked, kLookBits, 0), looked);
    bits = entry.head_bits + entry.rest_bits;
  } else {
    entry.skip0 = entry.advance = skip_of(first.symbol);
    entry.value0 = entry.value1 = static_cast<std::int16_t>(first.value);
    entry.head_bits = static_cast<std::uint8_t>(first.bits);
    const Head second = read_head(codes, looked, first.bits);
    bits += second.bits;
    if (is_end(second)) entry.advance = static_cast<std::uint8_t>(entry.advance + AcTable::kEnds);
    if (is_coefficient(second)) {
      entry.advance = static_cast<std::uint8_t>(entry.advance + skip_of(second.symbol));
      entry.value1 = static_cast<std::int16_t>(second.value);
    }
  }
  table.bits[looked] = static_cast<std::uint8_t>(bits);
}

void make_pass(AcTable& table, const Codes& codes, std::uint32_t looked) {
  int bits = 0, advance = 0;
  while (bits < kPassBits) {
    const Code code = code_at(codes, looked, kPassBits, bits);
    const int end = bits + code.length + (code.symbol & 15);
    const int place = is_end(code.symbol) ? advance + AcTable::kEnds : advance + skip_of(code.symbol);
    const bool fits = code.length > 0 && end <= kStepBits;
    if (!fits || (place >= 64 && place < AcTable::kEnds)) break;
    bits = end;
    advance = place;
    if (is_end(code.symbol)) break;
  }
  table.pass_bits[looked] = static_cast<std::uint8_t>(bits);
  table.pass_advance[looked] = bits == 0 ? AcTable::kAsk : static_cast<std::uint8_t>(advance);
}

}  // namespace

std::unique_ptr<DcTable> make_dc_table(const HuffmanSpec& spec) {
  auto table = std::make_unique<DcTable>();
  if (!fill_codes(spec, table->codes)) return nullptr;
  int num_symbols = 0;
  for (const std::uint8_t count : spec.counts) num_symbols += count;
  if (std::any_of(spec.symbols.begin(), spec.symbols.begin() + num_symbols,
                  [](std::uint8_t symbol) { return symbol > kMaxDcSize; }))
    return nullptr;
  for (std::uint32_t looked = 0; looked < table->entries.size(); ++looked) {
    const LongCodes::Found code = table->codes.find(looked << (16 - kDcLookBits));
    if (code.length == 0 || code.length > kDcLookBits) continue;
    DcTable::Entry& entry = table->entries[looked];
    entry.bits = static_cast<std::uint8_t>(code.length + code.symbol);
    entry.code_bits = static_cast<std::uint8_t>(code.length);
    entry.if_negative = static_cast<std::int16_t>(1 - (1 << code.symbol));
  }
  return table;
}

std::unique_ptr<AcTable> make_ac_table(const HuffmanSpec& spec) {
  auto table = std::make_unique<AcTable>();
  if (!fill_codes(spec, table->codes)) return nullptr;
  const Codes codes = codes_by_bits(spec);
  for (std::uint32_t looked = 0; looked < table->entries.size(); ++looked) make_entry(*table, codes, looked);
  return table;
}

void add_pass(AcTable& table, const HuffmanSpec& spec) {
  const Codes codes = codes_by_bits(spec);
  for (std::uint32_t looked = 0; looked < table.pass_bits.size(); ++looked) make_pass(table, codes, looked);
  table.has_pass = true;
}

template <typename Table, typename Make>
HuffmanCache::Kept<Table>* HuffmanCache::find(std::array<Kept<Table>, kKept>& kept, const HuffmanSpec& spec,
                                              const Make& make) {
  ++clock_;
  auto place =
      std::find_if(kept.begin(), kept.end(), [&](const auto& one) { return one.used != 0 && one.spec == spec; });
  if (place == kept.end()) {
    place = std::min_element(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
    *place = {spec, make(spec), 0, 0};
    if (place->table == nullptr) return nullptr;
  }
  place->used = clock_;
  return &*place;
}

const DcTable* HuffmanCache::dc(const HuffmanSpec& spec) {
  const Kept<DcTable>* kept = find(dc_, spec, make_dc_table);
  return kept == nullptr ? nullptr : kept->table.get();
}

const AcTable* HuffmanCache::ac(const HuffmanSpec& spec) {
  Kept<AcTable>* kept = find(ac_, spec, make_ac_table);
  if (kept == nullptr) return nullptr;
  if (++kept->times_asked == kTimesUntilPass) add_pass(*kept->table, spec);
  return kept->table.get();
}

}  // namespace infeed
