#pragma once
/// One sparse memfd, mapped once: | control block | extent 0 | extent 1 | ... |. No name anywhere; dies with its last
/// process. See docs/arena.md.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "memory/memfd.h"

namespace infeed {

/// Extents are whole multiples of this, and start at such offsets of the file.
inline constexpr std::size_t kExtentAlignment = std::size_t{2} << 20;

struct ArenaOptions {
  std::size_t control_bytes = 0;
  std::size_t extent_bytes = 0;  ///< rounded up to 2 MiB
  int num_extents = 1024;        ///< wanted; create() takes fewer where address space or RLIMIT_FSIZE leave less
  int min_extents = 4;           ///< fewer than this is a MemoryError with the limits found
};

/// Maps the descriptor shared (Boost.Interprocess mapped_region), MADV_DONTDUMP. Pages are committed on first touch.
/// Owns mapping and descriptor. Threads: const use from any. After a fork the child has the mapping too.
class Arena {
 public:
  /// Zeroed. Throws ConfigError for sizes that no machine has, MemoryError with what was wanted and what is left.
  [[nodiscard]] static Arena create(const ArenaOptions& options);
  /// In a spawned worker: the same geometry over an inherited descriptor. Throws ConfigError if the sizes do not fit
  /// the file.
  [[nodiscard]] static Arena attach(Memfd memfd, const ArenaOptions& geometry);

  Arena(Arena&&) noexcept;
  Arena& operator=(Arena&&) noexcept;
  ~Arena();

  /// Page aligned, geometry().control_bytes long.
  [[nodiscard]] std::byte* control() const noexcept;
  /// Page aligned; `index` in [0, num_extents).
  [[nodiscard]] std::byte* extent(int index) const noexcept;
  [[nodiscard]] std::size_t extent_bytes() const noexcept;
  [[nodiscard]] int num_extents() const noexcept;
  /// What attach() needs in another process.
  [[nodiscard]] ArenaOptions geometry() const noexcept;
  [[nodiscard]] int fd() const noexcept;
  /// Bytes of memory that the file holds now (fstat st_blocks).
  [[nodiscard]] std::uint64_t committed_bytes() const;
  /// In a child just forked: unmaps every other arena that the parent had and closes its descriptor, so that a worker
  /// of one loader does not keep the memory of another one alive. Async-signal-safe.
  void drop_others() const noexcept;
  /// `in_use` counts batches that lie in this arena in the user's hands: while there are any, drop_others() leaves it
  /// mapped, since a dataset may read them in its workers. Borrowed; outlives the arena.
  void keep_while(const std::atomic<int>& in_use) noexcept;
  /// Gives [from, extent_bytes) of an extent back to the system (FALLOC_FL_PUNCH_HOLE); the range reads as zeros after.
  /// `from` is rounded up to a page. Costs 1.2 µs a page, and 2.5 µs to touch it again.
  void punch(int extent, std::size_t from = 0) const noexcept;

 private:
  struct Mapping;
  explicit Arena(std::unique_ptr<Mapping> mapping) noexcept;
  std::unique_ptr<Mapping> mapping_;
};

}  // namespace infeed
