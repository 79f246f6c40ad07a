#pragma once
/// What an index keeps of one picture:
///
///   record   0  u32 magic "IXR1"      4  u32 nbytes, a multiple of 8      8  u64 name
///           16  u64 offset           24  u64 file_bytes                  32  i64 mtime_ns       40  u64 head
///           48  u32 width            52  u32 height                      56  u32 num_stretches  60  u32 num_entries
///           64  entry points         ..  zeros up to a multiple of 8     -8  u64 checksum of all before
///
///   entry point: varint bits behind the one before (the first: from the file's begin), then, for each of three
///                components, zigzag varint dc - the one before's
///
/// Little-endian. num_stretches and num_entries 0: the picture has no entry points.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/row_index.h"

namespace infeed {

/// Differs, in practice, between files, and between a file and its former self.
struct PictureKey {
  std::uint64_t file_bytes = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t head = 0;  ///< hash64 of the bytes before the coded data
  bool operator==(const PictureKey&) const = default;
};

struct IndexRecord {
  std::uint64_t name = 0;    ///< hash64 of the path below the data set's root, or of the member's name in a tar file
  std::uint64_t offset = 0;  ///< of the picture in its file: 0 but in a tar file
  PictureKey key;
  std::uint32_t width = 0, height = 0;  ///< as stored
  RowIndex rows;

  /// No decode will add to it.
  [[nodiscard]] bool is_complete() const noexcept { return rows.none || rows.is_complete(); }
};

/// Larger records are not written. The largest JPEG has 65,500 rows of 16 stretches at the very most.
inline constexpr std::size_t kMaxRecordBytes = std::size_t{8} << 20;
inline constexpr std::size_t kMinRecordBytes = 72;

/// Empty where it would exceed kMaxRecordBytes.
[[nodiscard]] std::vector<std::byte> encode(const IndexRecord& record);
/// Of the record that begins with `head`, at least 8 bytes; 0 where none does.
[[nodiscard]] std::size_t record_bytes(std::span<const std::byte> head) noexcept;
/// False where the bytes are no whole record, or a damaged one.
[[nodiscard]] bool decode(std::span<const std::byte> bytes, IndexRecord& record);
/// The same without the entry points, of which it says how many there are: a tenth of the time.
[[nodiscard]] bool decode_head(std::span<const std::byte> bytes, IndexRecord& record, std::size_t& num_entries);

}  // namespace infeed
