#pragma once
/// The arena, its ring and who holds which extent. Shared by the loader and by every batch in the user's hands, so that
/// a batch outlives its loader.

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "infeed/batch/batch.h"
#include "memory/arena.h"
#include "ring/ring.h"

namespace infeed {

/// Threads: lend() and trim() from the consumer; a lent extent may come home on any thread.
class BatchMemory : public std::enable_shared_from_this<BatchMemory> {
 public:
  /// Of the extents that were ever written, `keep_warm` keep their pages though they are free: what a full queue takes.
  BatchMemory(Arena arena, const RingConfig& config, int keep_warm);
  ~BatchMemory();
  BatchMemory(const BatchMemory&) = delete;
  BatchMemory& operator=(const BatchMemory&) = delete;

  [[nodiscard]] Ring& ring() noexcept { return ring_; }
  [[nodiscard]] const Arena& arena() const noexcept { return arena_; }

  /// Owner for a batch in `extent`: its end gives the extent back. In a process that the user forked it does nothing;
  /// an extent that was lent while the user forked is retired, since the child may still read it.
  [[nodiscard]] std::shared_ptr<void> lend(int extent);

  /// Moves the arrays to private memory and gives the extent back at once; for when extents are few.
  [[nodiscard]] std::shared_ptr<void> copy_out(int extent, std::vector<NamedArray>& arrays);

  /// Notes that `extent` is about to be written, up to `nbytes`.
  void touch(int extent, std::size_t nbytes) noexcept;
  [[nodiscard]] bool is_warm(int extent) const noexcept { return warm_bytes_[static_cast<std::size_t>(extent)] != 0; }
  /// True if no extent that was ever written is free: the next one costs new memory.
  [[nodiscard]] bool next_is_cold() const noexcept;
  /// Gives the pages of free extents back where more are warm than a full queue takes, and than were in use at once
  /// lately. Call once a batch.
  void trim() noexcept;
  /// From now on no page is given back: a device has locked some, and a locked page outlives its hole.
  void keep_all_warm() noexcept { keep_all_warm_ = true; }

  /// From now on an extent that comes home gives its pages back: no batch will lie there again.
  void serve_no_more() noexcept { served_ = true; }

  /// Batches in the user's hands, extents and private copies.
  [[nodiscard]] int held() const noexcept { return held_.load(std::memory_order_relaxed); }
  /// False in a process that was forked from the one that made this.
  [[nodiscard]] bool ours() const noexcept;

 private:
  struct Lease;
  struct PrivateCopy;
  void give_back(int extent, std::uint64_t forks) noexcept;

  std::atomic<int> held_{0};  ///< before arena_, which looks at it
  Arena arena_;
  Ring ring_;
  std::uint64_t home_;  ///< process_generation() of the maker
  std::atomic<bool> served_{false};
  std::vector<std::size_t> warm_bytes_;  ///< per extent: how far it was ever written since the last punch
  std::size_t warm_end_ = 0;             ///< no extent from here on was ever written
  int keep_warm_;
  bool keep_all_warm_ = false;
  int peak_in_use_ = 0;  ///< since the last look
  int batches_since_look_ = 0;
};

}  // namespace infeed
