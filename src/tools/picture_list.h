#pragma once
/// The pictures of a folder or of a tar file.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace infeed {

/// Bytes [offset, offset + nbytes) of a file.
struct Picture {
  std::string name;  ///< below the folder, or within the tar file
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;  ///< 0: the whole file
};

/// Files of the folder and below whose name ends so, in any case, sorted. Throws ConfigError where it cannot be read.
[[nodiscard]] std::vector<Picture> pictures_of_folder(const std::string& root, std::span<const std::string> extensions);

/// Members of a plain tar file (ustar, GNU long names, pax paths and sizes) whose name ends so. Throws DataError where
/// it cannot be read, is no tar file, compressed, or cut.
[[nodiscard]] std::vector<Picture> pictures_of_tar(const std::string& path, std::span<const std::string> extensions);

/// A picture's bytes, and when its file was last written. `buffer` is kept for its memory. Throws DataError.
struct PictureBytes {
  std::span<const std::byte> bytes;
  std::int64_t mtime_ns = 0;
};
[[nodiscard]] PictureBytes read_picture(const Picture& picture, std::vector<std::byte>& buffer);

/// Size and time without reading. Throws DataError.
[[nodiscard]] Picture with_size(Picture picture, std::int64_t& mtime_ns);

}  // namespace infeed
