#include "dataset/index_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/file_io.h"
#include "base/hash.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::array<char, 8> kIndexMagic{'i', 'n', 'f', 'e', 'e', 'd', 'I', 'X'};
constexpr std::array<char, 8> kPartMagic{'i', 'n', 'f', 'e', 'e', 'd', 'I', 'P'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kChunkBytes = 1 << 20;

struct Header {
  std::array<char, 8> magic{};
  std::uint32_t version = kVersion, zero = 0;
  std::uint64_t num_records = 0, directory = 0, directory_checksum = 0;
  std::uint64_t unused[2] = {};
  std::uint64_t checksum = 0;
};
static_assert(sizeof(Header) == kIndexHeaderBytes);

std::uint64_t checksum_of(const Header& header) {
  return hash64(std::as_bytes(std::span(&header, 1)).first(offsetof(Header, checksum)));
}

bool read_exactly(int fd, std::span<std::byte> bytes, std::uint64_t offset) {
  return read_some(fd, bytes, offset) == bytes.size();
}

bool read_header(int fd, Header& header) {
  return read_exactly(fd, std::as_writable_bytes(std::span(&header, 1)), 0) && header.version == kVersion &&
         header.checksum == checksum_of(header);
}

}  // namespace

std::vector<IndexName> read_directory(int fd) {
  Header header;
  struct stat status {};
  if (!read_header(fd, header) || header.magic != kIndexMagic || fstat(fd, &status) != 0) return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (header.directory > size || header.num_records != (size - header.directory) / sizeof(IndexName)) return {};
  std::vector<IndexName> names(header.num_records);
  const auto bytes = std::as_writable_bytes(std::span(names));
  if (!read_exactly(fd, bytes, header.directory) || hash64(bytes) != header.directory_checksum) return {};
  return names;
}

bool read_record(int fd, IndexPlace place, IndexRecord& record) {
  thread_local std::vector<std::byte> buffer;
  if (buffer.size() < place.nbytes()) buffer.resize(place.nbytes());
  const std::span bytes(buffer.data(), place.nbytes());
  return read_exactly(fd, bytes, place.offset()) && decode(bytes, record);
}

std::vector<std::byte> part_header() {
  Header header{.magic = kPartMagic};
  header.checksum = checksum_of(header);
  const auto bytes = std::as_bytes(std::span(&header, 1));
  return {bytes.begin(), bytes.end()};
}

bool is_part(int fd) {
  Header header;
  return read_header(fd, header) && header.magic == kPartMagic;
}

void check_replaceable(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;  // there is nothing, or writing will say why not
  std::array<char, 8> magic{};
  struct stat status {};
  const std::size_t got = read_some(fd, std::as_writable_bytes(std::span(magic)), 0);
  const bool is_file = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
  close(fd);
  if (is_file && std::equal(magic.begin(), magic.begin() + static_cast<std::ptrdiff_t>(got), kIndexMagic.begin()))
    return;
  throw DataError(fmt::format("'{}' is {}, and is left alone", path, is_file ? "no index" : "no regular file"));
}

bool RecordScan::have(std::size_t nbytes) {
  if (at_ + nbytes <= held_) return true;
  std::copy(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), buffer_.begin() + static_cast<std::ptrdiff_t>(held_),
            buffer_.begin());
  file_offset_ += at_;
  held_ -= at_;
  at_ = 0;
  buffer_.resize(std::max({buffer_.size(), nbytes, kChunkBytes}));
  held_ += read_some(fd_, std::span(buffer_).subspan(held_), file_offset_ + held_);
  return nbytes <= held_;
}

bool RecordScan::next() {
  at_ += size_;
  for (size_ = 0; have(kMinRecordBytes); at_ += 8) {
    const std::size_t nbytes = record_bytes({buffer_.data() + at_, kMinRecordBytes});
    if (nbytes == 0 || !have(nbytes) || !decode_head({buffer_.data() + at_, nbytes}, record_, num_entries_)) continue;
    size_ = nbytes;
    return true;
  }
  return false;
}

std::span<const std::byte> RecordScan::bytes() const noexcept { return {buffer_.data() + at_, size_}; }

IndexWriter::IndexWriter(std::string path) : path_(std::move(path)), new_path_(path_ + ".new") {
  fd_ = open(new_path_.c_str(), O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (fd_ < 0) throw DataError(fmt::format("'{}' cannot be written: {}", new_path_, std::strerror(errno)));
  buffer_.resize(kIndexHeaderBytes);
}

IndexWriter::~IndexWriter() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(new_path_.c_str());
}

void IndexWriter::add(std::span<const std::byte> bytes, std::uint64_t name, bool is_complete) {
  const std::uint64_t offset = written_ + buffer_.size();
  if (offset > IndexPlace::kMaxOffset) return;
  names_.push_back({name, IndexPlace(offset, bytes.size(), is_complete).word()});
  write(bytes);
}

void IndexWriter::write(std::span<const std::byte> bytes) {
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() >= kChunkBytes) flush();
}

void IndexWriter::flush() {
  if (!write_all(fd_, buffer_, written_))
    throw DataError(fmt::format("'{}' cannot be written: {}", new_path_, std::strerror(errno)));
  written_ += buffer_.size();
  buffer_.clear();
}

void IndexWriter::finish() {
  std::sort(names_.begin(), names_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  const auto directory = std::as_bytes(std::span(names_));
  Header header{.magic = kIndexMagic,
                .num_records = names_.size(),
                .directory = written_ + buffer_.size(),
                .directory_checksum = hash64(directory)};
  header.checksum = checksum_of(header);
  write(directory);
  flush();
  const bool named =
      write_all(fd_, std::as_bytes(std::span(&header, 1)), 0) && rename(new_path_.c_str(), path_.c_str()) == 0;
  if (!named) throw DataError(fmt::format("'{}' cannot be written: {}", path_, std::strerror(errno)));
  close(fd_);
  fd_ = -1;
}

}  // namespace infeed
