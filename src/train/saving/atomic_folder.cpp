#include "train/saving/atomic_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include "infeed/train/saving/error.h"
#include "train/saving/atomic_file.h"

namespace infeed::saving {
namespace fs = std::filesystem;
namespace {

std::string hidden(const fs::path& target) { return fmt::format(".{}.", target.filename().string()); }
fs::path old_name(const fs::path& target) { return folder_of(target) / (hidden(target) + "old"); }

[[noreturn]] void fail(const fs::path& path) { throw FileError(path, "cannot be written", errno); }

}  // namespace

AtomicFolder::AtomicFolder(fs::path target) : target_(std::move(target)) {
  std::error_code failed;
  fs::create_directories(folder_of(target_), failed);
  if (failed) throw FileError(folder_of(target_), "cannot be made", failed.value());
  remove_leftovers();
  std::random_device random;
  fresh_ = folder_of(target_) / fmt::format("{}{:08x}.tmp", hidden(target_), random());
  if (!fs::create_directory(fresh_, failed)) throw FileError(fresh_, "cannot be made", failed.value());
  lock_ = Descriptor(open(fresh_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!lock_.valid() || flock(lock_.fd(), LOCK_EX | LOCK_NB) != 0) fail(fresh_);
}

AtomicFolder::~AtomicFolder() {
  std::error_code ignored;
  fs::remove_all(fresh_, ignored);
}

void AtomicFolder::commit() {
  replace_folder(fresh_, target_);
  sync_folder(folder_of(target_));
}

void AtomicFolder::remove_leftovers() const {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_of(target_), ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(hidden(target_)) || !name.ends_with(".tmp")) continue;
    const Descriptor folder(open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.valid() && flock(folder.fd(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), ignored);
  }
}

fs::path present_folder(const fs::path& target) {
  std::error_code none;
  const bool crashed = !fs::exists(target, none) && fs::exists(old_name(target), none);
  return crashed ? old_name(target) : target;
}

void replace_folder(const fs::path& fresh, const fs::path& target, bool exchange) {
  const fs::path old = old_name(target);
  std::error_code ignored;
  if (exchange && renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  if (fs::exists(target, ignored)) {
    fs::remove_all(old, ignored);
    if (rename(target.c_str(), old.c_str()) != 0) fail(target);
  }
  if (rename(fresh.c_str(), target.c_str()) != 0) fail(target);
  fs::remove_all(old, ignored);
}

}  // namespace infeed::saving
