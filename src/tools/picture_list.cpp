#include "tools/picture_list.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "base/descriptor.h"
#include "base/file_io.h"
#include "dataset/file_list.h"
#include "infeed/base/error.h"

// tar member: | name 100 | mode, uid, gid 24 | size 12 | mtime 12 | checksum 8 | type 1 | link 100 | "ustar" ... prefix 155 at 345 | to 512 |
//             | data, up to a multiple of 512 |;   the end: two blocks of zeros, or the file's end

namespace infeed {
namespace {

constexpr std::uint64_t kTarBlock = 512;
constexpr std::uint64_t kMaxNameBytes = 1 << 16;

class File {
 public:
  explicit File(const std::string& path) : path_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    if (!file_.valid() || fstat(file_.fd(), &status) != 0) fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) fail("it is no regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);
    mtime_ns_ = mtime_ns_of(status);
  }
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] std::int64_t mtime_ns() const noexcept { return mtime_ns_; }
  void read(std::span<std::byte> bytes, std::uint64_t offset) const {
    if (read_some(file_.fd(), bytes, offset) < bytes.size())
      fail(errno != 0 ? std::strerror(errno) : "it is shorter than it was");
  }
  [[nodiscard]] std::string read_text(std::uint64_t offset, std::uint64_t size) const {
    std::string text(size, '\0');
    read(std::as_writable_bytes(std::span(text)), offset);
    return text;
  }
  [[noreturn]] void fail(const std::string& cause) const {
    throw DataError(fmt::format("'{}' cannot be read: {}.", path_, cause));
  }

 private:
  std::string path_;
  Descriptor file_;
  std::uint64_t size_ = 0;
  std::int64_t mtime_ns_ = 0;
};

/// One header block.
struct TarHeader {
  std::array<char, kTarBlock> block{};

  [[nodiscard]] std::string_view field(std::size_t at, std::size_t size) const {
    const std::string_view whole(block.data() + at, size);
    return whole.substr(0, whole.find('\0'));
  }
  /// Octal digits between blanks, or, above 8 GiB, binary.
  [[nodiscard]] std::uint64_t number(std::size_t at, std::size_t size) const {
    std::uint64_t value = 0;
    if ((static_cast<unsigned char>(block[at]) & 0x80) != 0) {
      for (std::size_t i = size - 8; i < size; ++i) value = value << 8 | static_cast<unsigned char>(block[at + i]);
      return value;
    }
    for (const char c : field(at, size)) {
      if (c >= '0' && c <= '7') value = value * 8 + static_cast<std::uint64_t>(c - '0');
    }
    return value;
  }
  [[nodiscard]] bool is_zero() const {
    return std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
  }
  [[nodiscard]] bool is_sound() const {
    std::uint64_t sum = 8 * ' ';
    for (std::size_t i = 0; i < block.size(); ++i)
      sum += i >= 148 && i < 156 ? 0 : static_cast<unsigned char>(block[i]);
    return sum == number(148, 8);
  }
  [[nodiscard]] std::string name() const {
    std::string name(field(0, 100));
    const std::string_view prefix = field(257, 5) == "ustar" && block[262] == 0 ? field(345, 155) : std::string_view();
    return prefix.empty() ? name : std::string(prefix) + '/' + name;
  }
};

/// "LENGTH path=...\n" and "LENGTH size=...\n" of a pax block.
void read_pax(std::string_view text, std::string& path, std::uint64_t& size) {
  while (!text.empty()) {
    std::size_t length = 0;
    std::from_chars(text.data(), text.data() + text.size(), length);
    if (length < 5 || length > text.size()) return;
    std::string_view entry = text.substr(0, length - 1);
    entry.remove_prefix(std::min(entry.size(), entry.find(' ') + 1));
    if (entry.starts_with("path=")) path = entry.substr(5);
    if (entry.starts_with("size=")) std::from_chars(entry.data() + 5, entry.data() + entry.size(), size);
    text.remove_prefix(length);
  }
}

}  // namespace

std::vector<Picture> pictures_of_folder(const std::string& root, std::span<const std::string> extensions) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (entry.is_directory()) {
      for (std::string& below : walk_class(root, name, extensions)) names.push_back(std::move(below));
    } else if (has_extension(name, extensions)) {
      names.push_back(name);
    }
  }
  if (error) throw ConfigError(fmt::format("folder '{}' cannot be read: {}.", root, error.message()));
  std::sort(names.begin(), names.end());
  std::vector<Picture> pictures;
  for (const std::string& name : names) pictures.push_back({name, fmt::format("{}/{}", root, name)});
  return pictures;
}

std::vector<Picture> pictures_of_tar(const std::string& path, std::span<const std::string> extensions) {
  const File file(path);
  std::vector<Picture> pictures;
  std::string long_name;
  std::uint64_t long_size = 0;
  for (std::uint64_t at = 0; at < file.size();) {
    TarHeader header;
    if (file.size() - at < kTarBlock) file.fail(fmt::format("the tar file ends within the header at byte {}", at));
    file.read(std::as_writable_bytes(std::span(header.block)), at);
    if (header.is_zero()) break;
    if (!header.is_sound())
      file.fail(fmt::format("there is no tar header at byte {}; compressed or damaged tar files are not read", at));
    const char type = header.block[156];
    const std::uint64_t size = long_size != 0 && type != 'x' && type != 'L' ? long_size : header.number(124, 12);
    at += kTarBlock;
    if (size > file.size() - at) file.fail(fmt::format("the tar file is cut: '{}' ends behind it", header.name()));
    if (type == 'L' && size <= kMaxNameBytes) {
      long_name = file.read_text(at, size).c_str();  // NOLINT: up to its zero
    } else if (type == 'x' && size <= kMaxNameBytes) {
      read_pax(file.read_text(at, size), long_name, long_size);
    } else {
      std::string name = long_name.empty() ? header.name() : long_name;
      const bool regular = type == '0' || type == 0 || type == '7';
      if (regular && size > 0 && has_extension(name, extensions)) pictures.push_back({std::move(name), path, at, size});
      long_name.clear();
      long_size = 0;
    }
    at += (size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
  return pictures;
}

PictureBytes read_picture(const Picture& picture, std::vector<std::byte>& buffer) {
  const File file(picture.file);
  const std::uint64_t nbytes = picture.nbytes == 0 ? file.size() : picture.nbytes;
  if (nbytes > std::uint64_t{2} << 30) file.fail(fmt::format("{} bytes are no picture", nbytes));
  if (buffer.size() < nbytes) buffer.resize(nbytes);
  const std::span bytes(buffer.data(), nbytes);
  file.read(bytes, picture.offset);
  return {bytes, file.mtime_ns()};
}

Picture with_size(Picture picture, std::int64_t& mtime_ns) {
  const File file(picture.file);
  mtime_ns = file.mtime_ns();
  if (picture.nbytes == 0) picture.nbytes = file.size();
  return picture;
}

}  // namespace infeed
