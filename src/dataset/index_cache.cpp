#include "dataset/index_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/file_io.h"
#include "base/hash.h"
#include "dataset/index_merge.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"

namespace infeed {

/// In shared memory; a place for each sample follows.
struct IndexCache::Table {
  std::atomic<std::uint64_t> part_end;
  std::atomic<std::uint32_t> stopped;
  std::byte zero[52];
};

namespace {

constexpr std::size_t kTableHeadBytes = 64;  // sizeof Table
constexpr std::size_t kMaxNameBytes = 200;   // of a folder, in its index's name; 255 with what follows

/// Sample by name, to be joined with a sorted directory.
struct NamedSample {
  std::uint64_t name;
  std::int64_t sample;
};

std::vector<NamedSample> sorted(const std::vector<std::uint64_t>& names) {
  std::vector<NamedSample> samples(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) samples[i] = {names[i], static_cast<std::int64_t>(i)};
  std::sort(samples.begin(), samples.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return samples;
}

/// Where the file is: an index is replaced whole, a link to it must stay.
std::string resolved(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path);
  const std::filesystem::path place = std::filesystem::weakly_canonical(absolute, error);
  return error ? absolute : place;
}

std::unique_ptr<FolderLock> take_lock(const std::string& path) {
  auto lock = FolderLock::take(folder_of(path));
  if (lock == nullptr)
    throw DataError(fmt::format("the folder '{}' cannot be locked: {}", folder_of(path),
                                errno == EWOULDBLOCK ? "another process does not give it back" : std::strerror(errno)));
  return lock;
}

}  // namespace

std::string automatic_index_path(const std::string& root) {
  std::error_code error;
  std::filesystem::path folder;
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  if (cache != nullptr && cache[0] == '/') {
    folder = cache;
  } else if (home != nullptr && home[0] == '/') {
    folder = std::filesystem::path(home) / ".cache";
  } else {
    return {};
  }
  folder /= "infeed";
  std::filesystem::create_directories(folder, error);  // a failure shows when the index is written
  const std::filesystem::path place = std::filesystem::weakly_canonical(root, error);
  const std::uint64_t hash = hash64(place.native());
  return folder / fmt::format("{}-{:016x}.index", place.filename().native().substr(0, kMaxNameBytes), hash);
}

std::unique_ptr<IndexCache> IndexCache::open(const std::string& path, const std::vector<std::uint64_t>& names) {
  auto cache = std::unique_ptr<IndexCache>(new IndexCache);
  cache->path_ = resolved(path);
  cache->num_samples_ = static_cast<std::int64_t>(names.size());
  cache->table_file_ = Memfd::create("infeed index", kTableHeadBytes + 8 * std::max<std::size_t>(1, names.size()));
  cache->map_table();
  cache->opener_ = getpid();
  try {
    check_replaceable(cache->path_);
    const auto lock = take_lock(cache->path_);
    const auto parts = abandoned_parts(cache->path_);
    if (!parts.empty()) merge_parts(cache->path_, parts);
    cache->read_index(names);
    if (cache->num_complete() < cache->size()) cache->begin_part();
  } catch (const DataError& error) {
    cache->warn(error.what());
    if (!cache->index_.valid()) cache->read_index(names);
  }
  return cache;
}

std::unique_ptr<IndexCache> IndexCache::adopt(const std::vector<std::int64_t>& fds) {
  if (fds.size() != 3)
    throw ConfigError(fmt::format("an index needs the 3 descriptors of its spec(), {} are given.", fds.size()));
  auto cache = std::unique_ptr<IndexCache>(new IndexCache);
  const auto copy = [](std::int64_t fd) { return fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, 3); };
  cache->table_file_ = Memfd::adopt(copy(fds[0]));
  cache->map_table();
  cache->num_samples_ = static_cast<std::int64_t>((cache->mapping_.size() - kTableHeadBytes) / 8);
  if (fds[1] != fds[0]) cache->index_ = Descriptor(copy(fds[1]));
  if (fds[2] != fds[0]) cache->part_ = Descriptor(copy(fds[2]));
  return cache;
}

IndexCache::~IndexCache() { close(); }

void IndexCache::map_table() {
  static_assert(sizeof(Table) == kTableHeadBytes);
  const std::size_t bytes = table_file_.size();
  if (bytes < kTableHeadBytes + 8) throw ConfigError("an index was handed over that is none.");
  mapping_ = SharedMapping(table_file_, bytes, true);
  table_ = reinterpret_cast<Table*>(mapping_.data());
}

std::atomic<std::uint64_t>& IndexCache::place(std::int64_t sample) const noexcept {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(table_ + 1)[sample];
}

void IndexCache::read_index(const std::vector<std::uint64_t>& names) {
  index_ = Descriptor(above_standard_streams(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)));
  if (!index_.valid() && errno == ENOENT) return;
  const std::vector<IndexName> directory = !index_.valid() ? std::vector<IndexName>() : read_directory(index_.fd());
  if (directory.empty() && lseek(index_.fd(), 0, SEEK_END) != 0)
    log(LogLevel::kInfo, fmt::format("'{}' is no index of this version, or damaged: it is made anew.", path_));
  auto known = directory.begin();
  for (const NamedSample& sample : sorted(names)) {
    while (known != directory.end() && known->name < sample.name) ++known;
    if (known == directory.end()) break;
    if (known->name == sample.name) place(sample.sample).store(known->place & ~(std::uint64_t{1} << 63));
  }
}

void IndexCache::begin_part() {
  const IndexPart part = make_part(path_);
  part_path_ = part.path;
  part_ = Descriptor(part.fd);
  table_->part_end.store(kIndexHeaderBytes);
}

void IndexCache::close() {
  if (opener_ != getpid() || !part_.valid()) return;
  table_->stopped.store(1, std::memory_order_relaxed);
  opener_ = 0;
  try {
    const auto lock = take_lock(path_);
    std::vector<std::string> parts = abandoned_parts(path_);
    if (table_->part_end.load() > kIndexHeaderBytes) {
      parts.push_back(part_path_);
    } else {
      unlink(part_path_.c_str());
    }
    if (!parts.empty()) merge_parts(path_, parts);
  } catch (const std::exception& error) {
    warn(error.what());
  }
}

bool IndexCache::read(std::int64_t sample, IndexRecord& record) const {
  const IndexPlace known(place(sample).load(std::memory_order_acquire));  // pairs with [placed]
  if (known.word() == 0) return false;
  return read_record(known.is_in_part() ? part_.fd() : index_.fd(), known, record);
}

bool IndexCache::find(std::int64_t sample, const PictureKey& key, IndexRecord& record) const {
  return read(sample, record) && record.key == key;
}

void IndexCache::add(std::int64_t sample, const IndexRecord& record) const {
  if (!part_.valid() || table_->stopped.load(std::memory_order_relaxed) != 0) return;
  const std::vector<std::byte> bytes = encode(record);
  if (bytes.empty()) return;
  const std::uint64_t offset = table_->part_end.fetch_add(bytes.size(), std::memory_order_relaxed);
  if (offset <= IndexPlace::kMaxOffset && write_all(part_.fd(), bytes, offset)) {
    const IndexPlace where(offset, bytes.size(), record.is_complete(), true);
    place(sample).store(where.word(), std::memory_order_release);  // [placed]
  } else if (table_->stopped.exchange(1, std::memory_order_relaxed) == 0) {
    warn(std::strerror(errno));
  }
}

void IndexCache::warn(const std::string& cause) const {
  {
    const std::lock_guard lock(mutex_);
    failure_ = cause;
  }
  log(LogLevel::kWarning, fmt::format("index_cache: {}. Decoding goes on, what it finds is not kept.", cause));
}

std::string IndexCache::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool IndexCache::is_complete(std::int64_t sample) const noexcept {
  return IndexPlace(place(sample).load(std::memory_order_relaxed)).is_complete();
}

std::int64_t IndexCache::num_complete() const noexcept {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < num_samples_; ++i) count += is_complete(i) ? 1 : 0;
  return count;
}

std::vector<std::int64_t> IndexCache::fds() const {
  const std::int64_t table = table_file_.fd();
  return {table, !index_.valid() ? table : index_.fd(), !part_.valid() ? table : part_.fd()};
}

}  // namespace infeed
