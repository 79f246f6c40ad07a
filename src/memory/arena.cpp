#include "memory/arena.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "base/huge_pages.h"
#include "infeed/base/error.h"
#include "memory/limits.h"

// file: | control, rounded up to 2 MiB | extent 0 | extent 1 | ... | extent num_extents - 1 |

namespace infeed {
namespace ipc = boost::interprocess;

struct ArenaRange {
  void* address;
  std::size_t bytes;
  int fd;
  const std::atomic<int>* in_use = nullptr;
  mutable bool dropped = false;  ///< by drop_others(): addresses and descriptor may be somebody else's by now
};

namespace {

// The arenas of this process, for drop_others(): lock-free, since a fork may come at any moment. More than fit are not
// listed: their memory lives as long as the longest-lived worker that was forked beside them.
constexpr std::size_t kListedArenas = 256;
std::array<std::atomic<const ArenaRange*>, kListedArenas> g_arenas{};

std::atomic<const ArenaRange*>* list_arena(const ArenaRange& range) {
  for (auto& place : g_arenas) {
    const ArenaRange* expected = nullptr;
    if (place.compare_exchange_strong(expected, &range, std::memory_order_acq_rel)) return &place;
  }
  return nullptr;
}

/// What the kernel can hold in the 47 bits of a process, less room for everything else.
constexpr std::size_t kLargestFile = std::size_t{64} << 40;

#if defined(__SANITIZE_THREAD__)
constexpr std::size_t kLargestMapping = std::size_t{256}
                                        << 30;  // its shadow memory takes the rest of the address space
#else
constexpr std::size_t kLargestMapping = kLargestFile;
#endif

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

constexpr std::size_t extents_offset(const ArenaOptions& geometry) {
  return round_up(geometry.control_bytes, kExtentAlignment);
}

std::size_t file_bytes(const ArenaOptions& geometry) {
  return extents_offset(geometry) + geometry.extent_bytes * static_cast<std::size_t>(geometry.num_extents);
}

void check_options(const ArenaOptions& options) {
  const bool sane = options.control_bytes <= kLargestFile && options.extent_bytes > 0 &&
                    options.extent_bytes <= kLargestFile && options.num_extents > 0 && options.min_extents > 0;
  if (sane) return;
  throw ConfigError(fmt::format(
      "an arena of {} bytes of control block and {} extents (at least {}) of {} bytes cannot be made: sizes "
      "are above 0 and at most {} bytes.",
      options.control_bytes, options.num_extents, options.min_extents, options.extent_bytes, kLargestFile));
}

/// The most bytes worth trying, and why.
struct Ceiling {
  std::size_t bytes = kLargestMapping;
  std::string reason = fmt::format("the address space ({} GiB)", kLargestMapping >> 30);
};

Ceiling find_ceiling() {
  Ceiling ceiling;
  const AddressLimits limits = read_address_limits();
  const auto lower = [&](std::uint64_t bytes, const char* reason) {
    if (bytes < ceiling.bytes) ceiling = {bytes, fmt::format("{} ({} MiB)", reason, bytes >> 20)};
  };
  if (limits.address_space_left) lower(*limits.address_space_left / 2, "half of what RLIMIT_AS (ulimit -v) leaves");
  if (limits.file_size) lower(*limits.file_size, "RLIMIT_FSIZE (ulimit -f)");
  return ceiling;
}

[[noreturn]] void throw_too_small(const ArenaOptions& wanted, const std::string& reason) {
  throw MemoryError(fmt::format(
      "the arena needs address space for at least {} extents of {} MiB and {} KiB of control block, more than "
      "{} allows. Raise that limit, or lower batch_size or extent_bytes.",
      wanted.min_extents, wanted.extent_bytes >> 20, wanted.control_bytes >> 10, reason));
}

/// Fewer extents where the ceiling is lower than what is wanted.
ArenaOptions fit(ArenaOptions geometry, const Ceiling& ceiling) {
  const std::size_t control = extents_offset(geometry);
  const std::size_t room = ceiling.bytes > control ? (ceiling.bytes - control) / geometry.extent_bytes : 0;
  if (room < static_cast<std::size_t>(geometry.min_extents)) throw_too_small(geometry, ceiling.reason);
  geometry.num_extents = static_cast<int>(std::min<std::size_t>(room, static_cast<std::size_t>(geometry.num_extents)));
  return geometry;
}

/// All that Boost asks of something that can be mapped.
struct MappableFile {
  int fd;
  [[nodiscard]] ipc::mapping_handle_t get_mapping_handle() const {
    return ipc::ipcdetail::mapping_handle_from_file_handle(fd);
  }
};

ipc::mapped_region map_shared(const Memfd& memfd, std::size_t bytes) {
  ipc::mapped_region region(MappableFile{memfd.fd()}, ipc::read_write, 0, bytes);
  madvise(region.get_address(), bytes, MADV_DONTDUMP);  // a core dump would commit every hole
  advise_huge_pages(region.get_address(), bytes);       // heeded where shmem_enabled is "advise" or more
  return region;
}

}  // namespace

struct Arena::Mapping {
  Memfd memfd;
  ArenaOptions geometry;
  ipc::mapped_region region;
  std::size_t extents_offset;
  ArenaRange range;
  std::atomic<const ArenaRange*>* place;

  Mapping(Memfd file, const ArenaOptions& sizes, ipc::mapped_region mapped)
      : memfd(std::move(file)),
        geometry(sizes),
        region(std::move(mapped)),
        extents_offset(infeed::extents_offset(sizes)),
        range{region.get_address(), region.get_size(), memfd.fd()},
        place(list_arena(range)) {}
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (place) place->store(nullptr, std::memory_order_release);
    if (!range.dropped) return;
    static_cast<void>(new ipc::mapped_region(std::move(region)));  // intentional: neither is unmapped nor closed again
    static_cast<void>(new Memfd(std::move(memfd)));
  }
};

Arena::Arena(std::unique_ptr<Mapping> mapping) noexcept : mapping_(std::move(mapping)) {}
Arena::Arena(Arena&&) noexcept = default;
Arena& Arena::operator=(Arena&&) noexcept = default;
Arena::~Arena() = default;

Arena Arena::create(const ArenaOptions& options) {
  check_options(options);
  ArenaOptions wanted = options;
  wanted.extent_bytes = round_up(options.extent_bytes, kExtentAlignment);
  wanted.min_extents = std::min(options.min_extents, options.num_extents);
  for (ArenaOptions geometry = fit(wanted, find_ceiling());;) {
    Memfd memfd = Memfd::create("infeed", file_bytes(geometry));
    try {
      auto region = map_shared(memfd, file_bytes(geometry));
      return Arena(std::make_unique<Mapping>(std::move(memfd), geometry, std::move(region)));
    } catch (
        const ipc::interprocess_exception& error) {  // sanitizers, valgrind and small address spaces refuse large maps
      if (geometry.num_extents == geometry.min_extents) throw_too_small(wanted, fmt::format("mmap ({})", error.what()));
    }
    geometry.num_extents = std::max(geometry.num_extents / 2, geometry.min_extents);
  }
}

Arena Arena::attach(Memfd memfd, const ArenaOptions& geometry) {
  check_options(geometry);
  const bool sane = static_cast<std::size_t>(geometry.num_extents) <= kLargestFile / geometry.extent_bytes;
  const std::size_t bytes = sane ? file_bytes(geometry) : 0, found = memfd.size();
  if (!sane || bytes != found || geometry.extent_bytes % kExtentAlignment != 0) {
    throw ConfigError(fmt::format(
        "descriptor {} holds {} bytes, but an arena of {} extents of {} bytes has {}. Both processes must come "
        "from the same build of infeed.",
        memfd.fd(), found, geometry.num_extents, geometry.extent_bytes, bytes));
  }
  try {
    auto region = map_shared(memfd, bytes);
    return Arena(std::make_unique<Mapping>(std::move(memfd), geometry, std::move(region)));
  } catch (const ipc::interprocess_exception& error) {
    throw MemoryError(
        fmt::format("the arena of {} MiB that the parent made cannot be mapped here: {}. Raise RLIMIT_AS (ulimit -v).",
                    bytes >> 20, error.what()));
  }
}

std::byte* Arena::control() const noexcept { return static_cast<std::byte*>(mapping_->region.get_address()); }

std::byte* Arena::extent(int index) const noexcept {
  return control() + mapping_->extents_offset + mapping_->geometry.extent_bytes * static_cast<std::size_t>(index);
}

std::size_t Arena::extent_bytes() const noexcept { return mapping_->geometry.extent_bytes; }
int Arena::num_extents() const noexcept { return mapping_->geometry.num_extents; }
ArenaOptions Arena::geometry() const noexcept { return mapping_->geometry; }
int Arena::fd() const noexcept { return mapping_->memfd.fd(); }

std::uint64_t Arena::committed_bytes() const {
  struct stat status {};
  if (fstat(fd(), &status) != 0)
    throw MemoryError(fmt::format("the arena's file cannot be asked for its size: {}.", std::strerror(errno)));
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

void Arena::keep_while(const std::atomic<int>& in_use) noexcept { mapping_->range.in_use = &in_use; }

void Arena::drop_others() const noexcept {
  for (const auto& place : g_arenas) {
    const ArenaRange* other = place.load(std::memory_order_acquire);
    if (!other || other == &mapping_->range || other->dropped) continue;
    if (other->in_use && other->in_use->load(std::memory_order_relaxed) > 0) continue;
    other->dropped = true;
    ::munmap(other->address, other->bytes);
    ::close(other->fd);
  }
}

void Arena::punch(int extent, std::size_t from) const noexcept {
  const std::size_t first = round_up(from, static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
  if (first >= extent_bytes()) return;
  const std::size_t offset = static_cast<std::size_t>(this->extent(extent) - control()) + first;
  fallocate(fd(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
            static_cast<off_t>(extent_bytes() - first));
}

}  // namespace infeed
