#include "staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>

#include "make_images.h"

namespace demo {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& what, const fs::path& path, int error) {
  std::string text = "cannot " + what + " " + path.string() + ": " + std::strerror(error);
  if (error == ENOSPC || error == EDQUOT) text += ". Free some space or choose another folder";
  if (error == EACCES || error == EPERM || error == EROFS) text += ". Choose a folder that you may write";
  throw ImageSetError(text);
}

// A descriptor on the folder that holds its lock; -1 if another process has it, or the folder is gone.
int try_lock(const fs::path& folder) noexcept {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return -1;
  if (::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::access(folder.c_str(), F_OK) == 0) return fd;
  ::close(fd);
  return -1;
}

}  // namespace

Staging::Staging(const fs::path& root) : root_(root) {
  std::error_code error;
  for (fs::path parent = root.parent_path(); !parent.empty() && !fs::exists(parent, error);
       parent = parent.parent_path()) {
    made_parents_.push_back(parent);
  }
  fs::create_directories(root.parent_path(), error);
  if (error) {
    for (const fs::path& parent : made_parents_) ::rmdir(parent.c_str());
    refuse("make the folder", root.parent_path(), error.value());
  }
  remove_leftovers();
  for (int n = 0; lock_fd_ < 0; ++n) {
    folder_ = root.string() + ".partial-" + std::to_string(::getpid()) + "-" + std::to_string(n);
    if (::mkdir(folder_.c_str(), 0777) == 0) {
      lock_fd_ = try_lock(folder_);  // fails if another process took it for a leftover in between
    } else if (errno != EEXIST) {
      const int cause = errno;
      for (const fs::path& parent : made_parents_) ::rmdir(parent.c_str());
      refuse("make the folder", folder_, cause);
    }
  }
}

Staging::~Staging() {
  std::error_code ignored;
  if (!committed_) {
    fs::remove_all(folder_, ignored);
    for (const fs::path& parent : made_parents_) ::rmdir(parent.c_str());  // refuses those that others use
  }
  ::close(lock_fd_);
}

// The lock of a process that died is free.
void Staging::remove_leftovers() const {
  const std::string prefix = root_.filename().string() + ".partial-";
  const fs::path parent = root_.has_parent_path() ? root_.parent_path() : fs::path(".");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (entry.path().filename().string().rfind(prefix, 0) != 0) continue;
    const int fd = try_lock(entry.path());
    if (fd < 0) continue;
    fs::remove_all(entry.path(), error);
    ::close(fd);
  }
}

void Staging::make_folder(const fs::path& below) const {
  std::error_code error;
  fs::create_directories(folder_ / below, error);
  if (error) refuse("make the folder", folder_ / below, error.value());
}

void Staging::write_file(const fs::path& below, const void* data, std::size_t bytes) const {
  const fs::path path = folder_ / below;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) refuse("create", path, errno);
  const char* at = static_cast<const char*>(data);
  for (std::size_t left = bytes; left > 0;) {
    const ::ssize_t wrote = ::write(fd, at, left);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      const int cause = errno;
      ::close(fd);
      refuse("write", path, cause);
    }
    at += wrote;
    left -= static_cast<std::size_t>(wrote);
  }
  if (::close(fd) != 0) refuse("write", path, errno);
}

void Staging::commit() {
  const fs::path old = folder_.string() + "-old";
  const bool replaces = ::rename(root_.c_str(), old.c_str()) == 0;
  if (!replaces && errno != ENOENT) refuse("replace", root_, errno);
  if (::rename(folder_.c_str(), root_.c_str()) != 0) {
    const int cause = errno;
    if (replaces) static_cast<void>(::rename(old.c_str(), root_.c_str()));
    refuse("rename the finished folder to", root_, cause);
  }
  committed_ = true;
  std::error_code ignored;
  if (replaces) fs::remove_all(old, ignored);
}

}  // namespace demo
