#pragma once
/// Parts into the index.

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace infeed {

/// Held by whoever makes or merges parts in a folder, one at a time. Goes with its process.
class FolderLock {
 public:
  /// Waits for others that long. Null where it was not enough, or the file system has no locks.
  [[nodiscard]] static std::unique_ptr<FolderLock> take(const std::string& folder,
                                                        std::chrono::milliseconds patience = std::chrono::seconds(5));
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int fd) : fd_(fd) {}
  int fd_;
};

/// A new, empty part that belongs to this process and those that inherit its descriptor.
struct IndexPart {
  std::string path;
  int fd = -1;
};

/// Under the lock. Throws DataError.
[[nodiscard]] IndexPart make_part(const std::string& index_path);
/// Under the lock: the parts of which no process is left.
[[nodiscard]] std::vector<std::string> abandoned_parts(const std::string& index_path);
/// Under the lock: writes an index of the records of the present one and of `parts`, of each name the one that knows
/// most of the newest file, and removes the parts. Throws DataError; then all is as it was.
void merge_parts(const std::string& index_path, const std::vector<std::string>& parts);

/// The folder that holds `path`.
[[nodiscard]] std::string folder_of(const std::string& path);

}  // namespace infeed
