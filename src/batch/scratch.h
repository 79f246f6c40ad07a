#pragma once
/// A worker's private memory for rows on their way to a collate.

#include <cstddef>
#include <memory>
#include <vector>

namespace infeed {

/// Bump allocator: everything is freed at once by reset(). Pages stay warm from batch to batch; after a giant batch the
/// memory shrinks again within some batches. One owner, one thread.
class Scratch {
 public:
  static constexpr std::size_t kAlign = 64;

  /// Never null, also for 0 bytes. Throws MemoryError.
  std::byte* allocate(std::size_t nbytes);
  /// Gives the latest allocation back, so that the next one takes its place.
  void undo(const std::byte* latest) noexcept;
  /// Frees all; keeps memory for about what recent batches needed.
  void reset() noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept;  ///< bytes held

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { ::operator delete[](p, std::align_val_t{kAlign}); }
  };
  struct Chunk {
    std::unique_ptr<std::byte[], Free> bytes;
    std::size_t size = 0;
    std::size_t used = 0;
  };
  void grow(std::size_t nbytes);

  std::vector<Chunk> chunks_;
  std::size_t recent_ = 0;  ///< decaying maximum of the bytes a batch used
};

}  // namespace infeed
