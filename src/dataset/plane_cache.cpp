#include "dataset/plane_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "base/file_io.h"
#include "infeed/base/error.h"
#include "infeed/base/log.h"
#include "memory/limits.h"

namespace infeed {

struct PlaneCache::Header {
  std::uint64_t magic = 0;
  std::int64_t num_samples = 0;
  std::uint64_t bytes = 0;
  std::atomic<std::uint64_t> used{0};  ///< offset behind the last record
  std::atomic<std::uint64_t> pictures{0};
  std::atomic<std::uint32_t> closed{0};
  alignas(64) std::atomic<std::uint64_t> hits{0};
};

namespace {

constexpr std::uint64_t kMagic = 0x31435049;  // "IPC1"
constexpr std::uint64_t kNothing = 0, kBeingWritten = 1;
constexpr std::uint64_t kAlign = 64, kPage = 4096, kReadBehind = 64;
constexpr std::uint64_t kSmallest = 64 << 10;     // room for pictures that makes sense at all
constexpr std::uint64_t kLookEvery = 16 << 20;    // of growth: how often the machine's memory is looked at
constexpr std::uint64_t kLeaveBytes = 256 << 20;  // of it, for everybody else

struct alignas(64) PictureHead {
  std::int32_t width = 0, height = 0, num_planes = 0, spread_x = 1, spread_y = 1;
};

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

struct Size {
  std::size_t width, height;
  [[nodiscard]] std::size_t bytes() const { return width * height; }
};

Size plane_size(const PictureHead& head, int place) {
  const auto part = [](std::int32_t all, std::int32_t spread) {
    return static_cast<std::size_t>((all + spread - 1) / spread);
  };
  return place == 0 ? Size{part(head.width, 1), part(head.height, 1)}
                    : Size{part(head.width, head.spread_x), part(head.height, head.spread_y)};
}

std::uint64_t record_bytes(const PictureHead& head) {
  std::uint64_t bytes = sizeof(PictureHead) + kReadBehind;
  for (int p = 0; p < head.num_planes; ++p) bytes += plane_size(head, p).bytes();
  return round_up(bytes, kAlign);
}

PictureHead head_of(const PlaneWindow& picture) {
  return {picture.width, picture.height, picture.num_planes, picture.spread_x, picture.spread_y};
}

void pack(const PictureHead& head, const PlaneWindow& picture, std::vector<std::byte>& record) {
  record.resize(record_bytes(head));
  std::memcpy(record.data(), &head, sizeof head);
  std::byte* to = record.data() + sizeof head;
  for (int p = 0; p < head.num_planes; ++p) {
    const SamplePlane& plane = picture.planes[static_cast<std::size_t>(p)];
    const Size size = plane_size(head, p);
    for (std::size_t y = 0; y < size.height; ++y, to += size.width)
      std::memcpy(to, plane.samples + static_cast<std::ptrdiff_t>(y) * plane.stride, size.width);
  }
}

PlaneWindow unpack(const std::byte* record) {
  PictureHead head;
  std::memcpy(&head, record, sizeof head);
  PlaneWindow picture{.num_planes = head.num_planes,
                      .planes = {},
                      .spread_x = head.spread_x,
                      .spread_y = head.spread_y,
                      .width = head.width,
                      .height = head.height};
  const auto* from = reinterpret_cast<const std::uint8_t*>(record) + sizeof head;
  for (int p = 0; p < head.num_planes; ++p) {
    const Size size = plane_size(head, p);
    picture.planes[static_cast<std::size_t>(p)] = {.samples = from,
                                                   .stride = static_cast<std::ptrdiff_t>(size.width),
                                                   .width = static_cast<int>(size.width),
                                                   .height = static_cast<int>(size.height)};
    from += size.bytes();
  }
  return picture;
}

std::uint64_t table_bytes_of(std::int64_t num_samples, std::size_t header) {
  return round_up(header + static_cast<std::uint64_t>(num_samples) * sizeof(std::uint64_t), kPage);
}

void check_budget(const PlaneCacheOptions& options, std::uint64_t table) {
  if (options.bytes < table + kSmallest)
    throw ConfigError(
        fmt::format("cache_bytes is {}: the table of {} samples takes {} of it, and no picture fits. "
                    "Give some 300 kB a picture of 500 x 375, or leave the cache out.",
                    options.bytes, options.num_samples, table));
  const MemoryLimit limits = read_memory_limit(options.root);
  if (limits.memory_left && *limits.memory_left < options.bytes)
    throw ConfigError(fmt::format("cache_bytes is {} ({} MiB), but {} leaves {} MiB. Lower cache_bytes.", options.bytes,
                                  options.bytes >> 20, limits.memory_source, *limits.memory_left >> 20));
}

void warn_without(const std::string& cause) {
  log(LogLevel::kWarning, fmt::format("no cache of planes, samples are decoded each time: {}", cause));
}

}  // namespace

std::unique_ptr<PlaneCache> PlaneCache::create(const PlaneCacheOptions& options) {
  const std::uint64_t table = table_bytes_of(options.num_samples, sizeof(Header));
  check_budget(options, table);
  try {
    std::unique_ptr<PlaneCache> cache(
        new PlaneCache(Memfd::create("infeed planes", options.bytes / kPage * kPage), options));
    new (cache->table_.data())
        Header{.magic = kMagic, .num_samples = options.num_samples, .bytes = options.bytes, .used = table};
    return cache;
  } catch (const MemoryError& error) {
    warn_without(error.what());
    return nullptr;
  }
}

std::unique_ptr<PlaneCache> PlaneCache::attach(std::int64_t fd, const PlaneCacheOptions& options) {
  const int own = fcntl(static_cast<int>(fd), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (own < 0) throw ConfigError(fmt::format("descriptor {} of a plane cache is not open in this process.", fd));
  try {
    Memfd file = Memfd::adopt(own);
    if (file.size() != options.bytes / kPage * kPage)
      throw ConfigError(fmt::format("descriptor {} is no plane cache of {} bytes.", fd, options.bytes));
    std::unique_ptr<PlaneCache> cache(new PlaneCache(std::move(file), options));
    const Header& header = *cache->header_;
    if (header.magic != kMagic || header.num_samples != options.num_samples || header.bytes != options.bytes)
      throw ConfigError(fmt::format("descriptor {} is no plane cache of {} samples.", fd, options.num_samples));
    return cache;
  } catch (const MemoryError& error) {
    warn_without(error.what());
    return nullptr;
  }
}

PlaneCache::PlaneCache(Memfd file, const PlaneCacheOptions& options) : options_(options), file_(std::move(file)) {
  options_.bytes = options.bytes / kPage * kPage;
  table_ = SharedMapping(file_, table_bytes_of(options.num_samples, sizeof(Header)), true);
  records_ = SharedMapping(file_, options_.bytes, false);
  header_ = reinterpret_cast<Header*>(table_.data());
}

PlaneCache::~PlaneCache() = default;

std::atomic<std::uint64_t>& PlaneCache::slot(std::int64_t index) const noexcept {
  return reinterpret_cast<std::atomic<std::uint64_t>*>(table_.data() + sizeof(Header))[index];
}

std::optional<PlaneWindow> PlaneCache::find(std::int64_t index) const noexcept {
  const std::uint64_t offset = slot(index).load(std::memory_order_acquire);  // pairs with [published]
  if (offset == kNothing || offset == kBeingWritten) return std::nullopt;
  header_->hits.fetch_add(1, std::memory_order_relaxed);
  return unpack(records_.data() + offset);
}

bool PlaneCache::wants(std::int64_t index, int width, int height) const noexcept {
  if (header_->closed.load(std::memory_order_relaxed) != 0) return false;
  if (slot(index).load(std::memory_order_relaxed) != kNothing) return false;
  const PictureHead usual{width, height, 3, 2, 2};
  const std::uint64_t used = header_->used.load(std::memory_order_relaxed);
  return record_bytes(usual) <= options_.bytes - used;
}

// A piece of the file, 0 where the budget has none left. A budget that is kept by this addition is never passed.
std::uint64_t PlaneCache::reserve(std::uint64_t bytes) noexcept {
  std::uint64_t used = header_->used.load(std::memory_order_relaxed);
  do {
    if (bytes > options_.bytes - used) return 0;
  } while (!header_->used.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  if (used / kLookEvery == (used + bytes) / kLookEvery) return used;
  const MemoryLimit limits = read_memory_limit(options_.root);
  if (!limits.memory_left || *limits.memory_left >= bytes + kLeaveBytes) return used;
  close(fmt::format("{} leaves {} MiB", limits.memory_source, *limits.memory_left >> 20));
  return 0;
}

void PlaneCache::close(const std::string& cause) noexcept {
  if (header_->closed.exchange(1, std::memory_order_relaxed) != 0) return;
  log(LogLevel::kWarning, fmt::format("the cache of planes stays at {} pictures ({} MiB): {}.",
                                      header_->pictures.load(std::memory_order_relaxed),
                                      header_->used.load(std::memory_order_relaxed) >> 20, cause));
}

void PlaneCache::put(std::int64_t index, const PlaneWindow& picture, std::vector<std::byte>& scratch) noexcept try {
  if (header_->closed.load(std::memory_order_relaxed) != 0) return;
  std::uint64_t expected = kNothing;
  if (!slot(index).compare_exchange_strong(expected, kBeingWritten, std::memory_order_relaxed)) return;
  const PictureHead head = head_of(picture);
  std::uint64_t offset = reserve(record_bytes(head));
  if (offset != 0) {
    pack(head, picture, scratch);
    if (!write(offset, scratch)) offset = 0;
  }
  if (offset != 0) header_->pictures.fetch_add(1, std::memory_order_relaxed);
  slot(index).store(offset == 0 ? kNothing : offset, std::memory_order_release);  // [published]
} catch (const std::exception& error) {  // no memory to pack it, or to look at the machine
  slot(index).store(kNothing, std::memory_order_relaxed);
  close(error.what());
}

// By the file, not by the mapping: where memory is refused this is an error, there a signal; and no page is faulted in.
bool PlaneCache::write(std::uint64_t offset, std::span<const std::byte> record) noexcept {
  if (write_all(file_.fd(), record, offset)) return true;
  close(fmt::format("the system refuses more memory ({})", std::strerror(errno)));
  return false;
}

PlaneCacheStats PlaneCache::stats() const noexcept {
  return {.pictures = header_->pictures.load(std::memory_order_relaxed),
          .hits = header_->hits.load(std::memory_order_relaxed),
          .bytes_used = header_->used.load(std::memory_order_relaxed),
          .closed = header_->closed.load(std::memory_order_relaxed) != 0};
}

}  // namespace infeed
