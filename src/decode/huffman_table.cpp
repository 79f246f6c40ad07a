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

/// A symbol and its value, if they are whole in the bits that are looked at.
struct Head {
  std::uint8_t symbol = 0;
  std::int32_t value = 0;
  int bits = 0;  ///< 0: not whole
};

/// What begins at bit `from` of `looked`, a word of `width` bits.
Head read_head(const LongCodes& codes, std::uint32_t looked, int width, int from) {
  const std::uint32_t rest = (looked << from) & ((std::uint32_t{1} << width) - 1);  // left-aligned in the width
  const LongCodes::Found found = codes.find(rest << (16 - width));
  const int size = found.symbol & 15;
  if (found.length == 0 || from + found.length + size > width) return {};
  const std::uint32_t raw = (rest >> (width - found.length - size)) & ((std::uint32_t{1} << size) - 1);
  return {found.symbol, extend(raw, size), found.length + size};
}

bool is_coefficient(const Head& head) { return head.bits > 0 && (head.symbol & 15) != 0; }
bool is_end(const Head& head) { return head.bits > 0 && (head.symbol & 15) == 0 && head.symbol != kRunOf16; }
std::uint8_t skip_of(const Head& head) { return static_cast<std::uint8_t>((head.symbol >> 4) + 1); }

AcTable::Entry make_entry(const LongCodes& codes, std::uint32_t looked) {
  AcTable::Entry entry;
  const Head first = read_head(codes, looked, kLookBits, 0);
  if (is_end(first)) {
    entry.bits = static_cast<std::uint8_t>(first.bits);
    entry.bits0 = AcTable::kEnds;
    return entry;
  }
  if (!is_coefficient(first)) {
    const LongCodes::Found code = codes.find(looked << (16 - kLookBits));
    if (code.length <= kLookBits) {
      entry.symbol = code.symbol;
      entry.bits0 = static_cast<std::uint8_t>(code.length);
    }
    return entry;
  }
  entry.skip0 = skip_of(first);
  entry.value0 = entry.value1 = static_cast<std::int16_t>(first.value);
  entry.bits0 = static_cast<std::uint8_t>(first.bits);
  int bits = first.bits;
  const Head second = read_head(codes, looked, kLookBits, first.bits);
  if (is_coefficient(second)) {
    entry.skip1 = skip_of(second);
    entry.value1 = static_cast<std::int16_t>(second.value);
    bits += second.bits;
  } else if (is_end(second)) {
    entry.bits0 |= AcTable::kEnds;
    bits += second.bits;
  }
  entry.bits = static_cast<std::uint8_t>(bits);
  return entry;
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
    const Head head = read_head(table->codes, looked, kDcLookBits, 0);
    table->entries[looked] = {static_cast<std::int16_t>(head.value), static_cast<std::uint8_t>(head.bits)};
  }
  return table;
}

std::unique_ptr<AcTable> make_ac_table(const HuffmanSpec& spec) {
  auto table = std::make_unique<AcTable>();
  if (!fill_codes(spec, table->codes)) return nullptr;
  for (std::uint32_t looked = 0; looked < table->entries.size(); ++looked)
    table->entries[looked] = make_entry(table->codes, looked);
  return table;
}

template <typename Table, typename Make>
const Table* HuffmanCache::find(std::array<Kept<Table>, kKept>& kept, const HuffmanSpec& spec, const Make& make) {
  ++clock_;
  auto place =
      std::find_if(kept.begin(), kept.end(), [&](const auto& one) { return one.used != 0 && one.spec == spec; });
  if (place == kept.end()) {
    place = std::min_element(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
    place->used = 0;
    auto table = make(spec);
    if (table == nullptr) return nullptr;
    place->spec = spec;
    place->table = std::move(table);
  }
  place->used = clock_;
  return place->table.get();
}

const DcTable* HuffmanCache::dc(const HuffmanSpec& spec) { return find(dc_, spec, make_dc_table); }
const AcTable* HuffmanCache::ac(const HuffmanSpec& spec) { return find(ac_, spec, make_ac_table); }

}  // namespace infeed
