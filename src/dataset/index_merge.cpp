#include "dataset/index_merge.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>
#include <unordered_map>

#include "base/descriptor.h"
#include "base/file_io.h"
#include "dataset/index_file.h"
#include "infeed/base/error.h"
#include "memory/memfd.h"

// INDEX          named only when it is whole
// INDEX.new      being written, under the lock; the next writer writes over what is left of one
// INDEX.XXXXXX.part   locked (flock) as long as a process has it open

namespace infeed {
namespace {

constexpr std::chrono::milliseconds kPause{20};
constexpr const char* kSuffix = ".part";

Descriptor open_to_read(const std::string& path) {
  return Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
}

/// The best record of a name so far.
struct Best {
  PictureKey key;
  std::size_t num_entries = 0;
  std::size_t source = 0;
  std::uint64_t offset = 0;
};

// The same file: who knows more. Else: who came later.
bool is_better(const RecordScan& scan, const Best& best) {
  return !(scan.record().key == best.key) || scan.num_entries() >= best.num_entries;
}

bool is_complete(const RecordScan& scan) {
  const RowIndex& rows = scan.record().rows;
  return rows.none || scan.num_entries() == static_cast<std::size_t>(rows.num_stretches) + 1;
}

using BestByName = std::unordered_map<std::uint64_t, Best>;

void find_best(int fd, std::size_t source, BestByName& best) {
  RecordScan scan(fd);
  while (scan.next()) {
    const IndexRecord& record = scan.record();
    const auto [at, fresh] = best.try_emplace(record.name);
    if (fresh || is_better(scan, at->second)) at->second = {record.key, scan.num_entries(), source, scan.offset()};
  }
}

void copy_best(int fd, std::size_t source, const BestByName& best, IndexWriter& writer) {
  RecordScan scan(fd);
  while (scan.next()) {
    const auto at = best.find(scan.record().name);
    if (at != best.end() && at->second.source == source && at->second.offset == scan.offset())
      writer.add(scan.bytes(), scan.record().name, is_complete(scan));
  }
}

bool is_abandoned(const std::string& path) {
  const Descriptor file = open_to_read(path);
  if (!file.valid() || flock(file.fd(), LOCK_EX | LOCK_NB) != 0) return false;
  struct stat status {};
  if (fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
  return status.st_size == 0 || is_part(file.fd());
}

}  // namespace

std::unique_ptr<FolderLock> FolderLock::take(const std::string& folder, std::chrono::milliseconds patience) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  auto lock = std::unique_ptr<FolderLock>(new FolderLock(fd));
  for (auto end = std::chrono::steady_clock::now() + patience;;) {
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return lock;
    const bool held = errno == EWOULDBLOCK || errno == EINTR;
    if (!held || std::chrono::steady_clock::now() > end) return nullptr;
    std::this_thread::sleep_for(kPause);
  }
}

FolderLock::~FolderLock() { close(fd_); }

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

IndexPart make_part(const std::string& index_path) {
  IndexPart part{index_path + ".XXXXXX" + kSuffix, -1};
  part.fd = above_standard_streams(mkostemps(part.path.data(), static_cast<int>(std::strlen(kSuffix)), O_CLOEXEC));
  const bool ready = part.fd >= 0 && flock(part.fd, LOCK_EX | LOCK_NB) == 0 && write_all(part.fd, part_header(), 0);
  if (ready) return part;
  const int cause = errno;
  if (part.fd >= 0) {
    unlink(part.path.c_str());
    close(part.fd);
  }
  throw DataError(fmt::format("'{}' cannot be written: {}", part.path, std::strerror(cause)));
}

std::vector<std::string> abandoned_parts(const std::string& index_path) {
  std::vector<std::string> parts;
  std::error_code error;
  const std::string prefix = std::filesystem::path(index_path).filename().string() + '.';
  for (const auto& entry : std::filesystem::directory_iterator(folder_of(index_path), error)) {
    const std::string name = entry.path().filename();
    const bool ours =
        name.starts_with(prefix) && name.ends_with(kSuffix) && name.size() == prefix.size() + 6 + std::strlen(kSuffix);
    if (ours && is_abandoned(entry.path())) parts.push_back(entry.path());
  }
  std::sort(parts.begin(), parts.end());
  return parts;
}

void merge_parts(const std::string& index_path, const std::vector<std::string>& parts) {
  check_replaceable(index_path);
  std::vector<Descriptor> files;
  files.push_back(open_to_read(index_path));
  for (const std::string& part : parts) files.push_back(open_to_read(part));
  BestByName best;
  for (std::size_t i = 0; i < files.size(); ++i) find_best(files[i].fd(), i, best);
  IndexWriter writer(index_path);
  for (std::size_t i = 0; i < files.size(); ++i) copy_best(files[i].fd(), i, best, writer);
  writer.finish();
  for (const std::string& part : parts) unlink(part.c_str());
}

}  // namespace infeed
