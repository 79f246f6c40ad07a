#include "train/saving/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <random>
#include <utility>

#include "base/file_io.h"
#include "infeed/train/saving/error.h"

namespace infeed::saving {
namespace fs = std::filesystem;

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

fs::path fresh_name_beside(const fs::path& target) {
  std::random_device random;
  return folder_of(target) / fmt::format(".infeed-{:08x}{:08x}.tmp", random(), random());
}

void sync_folder(const fs::path& folder) {
  const Descriptor open_folder(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const bool done = open_folder.valid() && fsync(open_folder.fd()) == 0;
  if (!done && errno != EINVAL) throw FileError(folder, "cannot be made durable", errno);  // EINVAL: knows no fsync
}

AtomicFile::AtomicFile(fs::path target) : target_(std::move(target)) {
  std::error_code none;
  if (fs::is_symlink(target_, none) && fs::exists(target_, none)) target_ = fs::canonical(target_);
  fresh_ = fresh_name_beside(target_);
  is_direct_ = fs::exists(target_, none) && !fs::is_regular_file(target_, none) && !fs::is_directory(target_, none);
  if (is_direct_) {
    file_ = Descriptor(open(target_.c_str(), O_WRONLY | O_CLOEXEC));
  } else {
    file_ = Descriptor(open(folder_of(target_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
    if (!file_.valid() && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
      file_ = Descriptor(open(fresh_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
      is_named_ = file_.valid();
    }
  }
  if (!file_.valid()) fail();
}

AtomicFile::~AtomicFile() {
  if (is_named_) unlink(fresh_.c_str());
}

void AtomicFile::fail() const { throw FileError(target_, "cannot be written", errno); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (!write_all(file_.fd(), bytes, written_)) fail();
  written_ += bytes.size();
}

void AtomicFile::commit() {
  if (is_direct_) return;
  if (fsync(file_.fd()) != 0) fail();
  if (!is_named_) {
    const auto unnamed = fmt::format("/proc/self/fd/{}", file_.fd());
    if (linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, fresh_.c_str(), AT_SYMLINK_FOLLOW) != 0) fail();
    is_named_ = true;
  }
  if (rename(fresh_.c_str(), target_.c_str()) != 0) fail();
  is_named_ = false;
  sync_folder(folder_of(target_));
}

}  // namespace infeed::saving
