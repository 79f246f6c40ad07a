#pragma once
/// Files of records. An index is written once and replaced whole; a part grows while workers append to it, and is
/// merged into the index later:
///
///   index   | Header 64 B | records | directory: num_records x { u64 name, u64 place }, sorted by name |
///   part    | Header 64 B | records in any order, with holes where a writer died |
///
///   Header   0  "infeedIX", "infeedIP"   8  u32 version = 1   12  u32 zero   16  u64 num_records   24  u64 directory's
///            offset   32  u64 checksum of the directory   40  zero   56  u64 checksum of the 56 bytes before
///            (a part: all zero from 16 on)
///   place    bit 62  record is complete   61..20  offset / 8   19..0  nbytes / 8       (bit 63: see IndexCache)
///
/// Little-endian. What is damaged is passed over: a record by its checksum, an index by its header and directory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "dataset/index_record.h"

namespace infeed {

inline constexpr std::size_t kIndexHeaderBytes = 64;

/// Where a record lies in a file, in one word. 0: nowhere.
class IndexPlace {
 public:
  IndexPlace() = default;
  explicit IndexPlace(std::uint64_t word) : word_(word) {}
  IndexPlace(std::uint64_t offset, std::size_t nbytes, bool complete, bool in_part = false)
      : word_((std::uint64_t{in_part} << 63) | (std::uint64_t{complete} << 62) | (offset / 8 << 20) | (nbytes / 8)) {}

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] std::uint64_t offset() const noexcept { return (word_ >> 20 & kOffsetMask) * 8; }
  [[nodiscard]] std::size_t nbytes() const noexcept { return (word_ & kSizeMask) * 8; }
  [[nodiscard]] bool is_complete() const noexcept { return (word_ >> 62 & 1) != 0; }
  [[nodiscard]] bool is_in_part() const noexcept { return word_ >> 63 != 0; }

  static constexpr std::uint64_t kMaxOffset = (std::uint64_t{1} << 45) - 8;

 private:
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << 42) - 1, kSizeMask = (std::uint64_t{1} << 20) - 1;
  std::uint64_t word_ = 0;
};
static_assert(kMaxRecordBytes / 8 < (1U << 20) + 1);

struct IndexName {
  std::uint64_t name = 0;
  std::uint64_t place = 0;
};

/// The directory of the index open at `fd`; empty where it is none, of another version, or damaged.
[[nodiscard]] std::vector<IndexName> read_directory(int fd);
/// Reads one record. False where the place holds none.
[[nodiscard]] bool read_record(int fd, IndexPlace place, IndexRecord& record);

/// Header of a new part.
[[nodiscard]] std::vector<std::byte> part_header();
[[nodiscard]] bool is_part(int fd);
/// Throws DataError where something else stands at `path`, which an index must not replace: a folder, or a file that
/// does not begin as one (sound or not).
void check_replaceable(const std::string& path);

/// Whole records of an index or a part, front to back; damaged ones are passed over.
class RecordScan {
 public:
  explicit RecordScan(int fd) : fd_(fd) {}
  /// False at the end. All else is of this record.
  [[nodiscard]] bool next();
  /// Without its entry points.
  [[nodiscard]] const IndexRecord& record() const noexcept { return record_; }
  [[nodiscard]] std::size_t num_entries() const noexcept { return num_entries_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept;
  [[nodiscard]] std::uint64_t offset() const noexcept { return file_offset_ + at_; }

 private:
  [[nodiscard]] bool have(std::size_t nbytes);

  int fd_;
  IndexRecord record_;
  std::size_t num_entries_ = 0;
  std::vector<std::byte> buffer_;
  std::uint64_t file_offset_ = kIndexHeaderBytes;  ///< of the buffer's first byte
  std::size_t at_ = 0, held_ = 0, size_ = 0;       ///< in the buffer: the record, the end; bytes of the record
};

/// Writes a new index, and names it only when it is whole. One owner.
class IndexWriter {
 public:
  /// Writes to `path`.new, over what an earlier writer left. Throws DataError, as all calls.
  explicit IndexWriter(std::string path);
  ~IndexWriter();  ///< removes what was not finished
  IndexWriter(const IndexWriter&) = delete;
  IndexWriter& operator=(const IndexWriter&) = delete;

  /// A record's bytes.
  void add(std::span<const std::byte> bytes, std::uint64_t name, bool is_complete);
  void finish();

 private:
  void write(std::span<const std::byte> bytes);
  void flush();

  std::string path_, new_path_;
  int fd_ = -1;
  std::vector<std::byte> buffer_;
  std::uint64_t written_ = 0;
  std::vector<IndexName> names_;
};

}  // namespace infeed
