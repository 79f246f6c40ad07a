#include "dataset/index_record.h"

#include <bit>
#include <cstring>

#include "base/hash.h"

namespace infeed {
namespace {

static_assert(std::endian::native == std::endian::little, "an index is little-endian: swap its words here");

constexpr std::uint32_t kMagic = 0x31525849;  // "IXR1"
constexpr std::size_t kHeadBytes = 64, kChecksumBytes = 8;
static_assert(kHeadBytes + kChecksumBytes == kMinRecordBytes);

struct Head {
  std::uint32_t magic, nbytes;
  std::uint64_t name, offset, file_bytes;
  std::int64_t mtime_ns;
  std::uint64_t head;
  std::uint32_t width, height, num_stretches, num_entries;
};
static_assert(sizeof(Head) == kHeadBytes);

std::uint64_t position(const EntryPoint& entry) { return std::uint64_t{entry.offset} * 8 + entry.bit; }

void put_varint(std::vector<std::byte>& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::byte>(value | 0x80));
  out.push_back(static_cast<std::byte>(value));
}

void put_entries(std::vector<std::byte>& out, const std::vector<EntryPoint>& entries) {
  EntryPoint before;
  for (const EntryPoint& entry : entries) {
    put_varint(out, position(entry) - position(before));
    for (std::size_t i = 0; i < entry.dc.size(); ++i) {
      const std::int32_t difference = entry.dc[i] - before.dc[i];
      put_varint(out, (static_cast<std::uint32_t>(difference) << 1) ^ static_cast<std::uint32_t>(difference >> 31));
    }
    before = entry;
  }
}

/// Values of a span; behind its end and for values that are too long, 0 and `failed`.
struct VarintReader {
  const std::byte* next;
  const std::byte* end;
  bool failed = false;

  std::uint64_t take() noexcept {
    std::uint64_t value = 0;
    for (int shift = 0; next != end && shift < 63; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(*next++);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    failed = true;
    return 0;
  }
};

bool take_entries(VarintReader& reader, std::size_t count, std::vector<EntryPoint>& entries) {
  std::uint64_t at = 0;
  EntryPoint entry;
  entries.reserve(count);
  for (; count > 0 && !reader.failed; --count) {
    at += reader.take();
    if (at >> 35 != 0) return false;
    entry.offset = static_cast<std::uint32_t>(at / 8);
    entry.bit = static_cast<std::uint8_t>(at % 8);
    for (std::int16_t& dc : entry.dc) {
      const auto raw = static_cast<std::uint32_t>(reader.take());
      dc = static_cast<std::int16_t>(static_cast<std::uint32_t>(dc) + ((raw >> 1) ^ (0U - (raw & 1))));
    }
    entries.push_back(entry);
  }
  return !reader.failed;
}

}  // namespace

std::vector<std::byte> encode(const IndexRecord& record) {
  std::vector<std::byte> bytes(kHeadBytes);
  put_entries(bytes, record.rows.entries);
  bytes.resize((bytes.size() + 7) / 8 * 8);
  if (bytes.size() + kChecksumBytes > kMaxRecordBytes) return {};
  const Head head{.magic = kMagic,
                  .nbytes = static_cast<std::uint32_t>(bytes.size() + kChecksumBytes),
                  .name = record.name,
                  .offset = record.offset,
                  .file_bytes = record.key.file_bytes,
                  .mtime_ns = record.key.mtime_ns,
                  .head = record.key.head,
                  .width = record.width,
                  .height = record.height,
                  .num_stretches = static_cast<std::uint32_t>(record.rows.num_stretches),
                  .num_entries = static_cast<std::uint32_t>(record.rows.entries.size())};
  std::memcpy(bytes.data(), &head, sizeof head);
  const std::uint64_t checksum = hash64(bytes);
  bytes.resize(bytes.size() + kChecksumBytes);
  std::memcpy(bytes.data() + bytes.size() - kChecksumBytes, &checksum, kChecksumBytes);
  return bytes;
}

std::size_t record_bytes(std::span<const std::byte> head) noexcept {
  std::uint32_t words[2];
  std::memcpy(words, head.data(), sizeof words);
  const bool is_record = words[0] == kMagic && words[1] >= kMinRecordBytes && words[1] <= kMaxRecordBytes;
  return is_record && words[1] % 8 == 0 ? words[1] : 0;
}

bool decode_head(std::span<const std::byte> bytes, IndexRecord& record, std::size_t& num_entries) {
  if (bytes.size() < kMinRecordBytes || record_bytes(bytes) != bytes.size()) return false;
  const auto body = bytes.first(bytes.size() - kChecksumBytes);
  std::uint64_t checksum = 0;
  std::memcpy(&checksum, body.data() + body.size(), sizeof checksum);
  if (checksum != hash64(body)) return false;
  Head head;
  std::memcpy(&head, body.data(), sizeof head);
  const std::size_t least = std::size_t{head.num_entries} * 4;
  if (least > body.size() || head.num_stretches > kMaxRecordBytes) return false;
  record.name = head.name;
  record.offset = head.offset;
  record.key = {head.file_bytes, head.mtime_ns, head.head};
  record.width = head.width;
  record.height = head.height;
  record.rows.none = head.num_stretches == 0;
  record.rows.num_stretches = static_cast<int>(head.num_stretches);
  record.rows.entries.clear();
  num_entries = head.num_entries;
  return true;
}

bool decode(std::span<const std::byte> bytes, IndexRecord& record) {
  std::size_t num_entries = 0;
  if (!decode_head(bytes, record, num_entries)) return false;
  VarintReader reader{bytes.data() + kHeadBytes, bytes.data() + bytes.size() - kChecksumBytes};
  return take_entries(reader, num_entries, record.rows.entries);
}

}  // namespace infeed
