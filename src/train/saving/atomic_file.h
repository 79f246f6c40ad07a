#pragma once
/// A file that appears whole or not at all.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/descriptor.h"

namespace infeed::saving {

/// Writes beside `target` and takes its name at commit(). Where the file system can, the bytes have no name until then,
/// so that even a killed writer leaves nothing. A link is followed; what is no regular file (/dev/null) is written
/// directly. Throws FileError.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  /// To the disk, then into place.
  void commit();

 private:
  [[noreturn]] void fail() const;

  std::filesystem::path target_, fresh_;
  Descriptor file_;
  bool is_named_ = false;   // fresh_ is there and must go or become target_
  bool is_direct_ = false;  // target_ itself is open
  std::uint64_t written_ = 0;
};

/// A hidden name beside `target` that nobody has: ".infeed-<number>.tmp".
[[nodiscard]] std::filesystem::path fresh_name_beside(const std::filesystem::path& target);
/// Makes the names in `folder` durable. Throws FileError.
void sync_folder(const std::filesystem::path& folder);
/// Where `path` lies: "." for a bare name.
[[nodiscard]] std::filesystem::path folder_of(const std::filesystem::path& path);

}  // namespace infeed::saving
