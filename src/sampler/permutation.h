#pragma once
/// The memory of a shuffled order.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

#include "infeed/base/rng.h"

namespace infeed {

/// torch.randperm(size): 4 bytes an index up to 2^31 indices, 8 above, in huge pages where the kernel gives them. Takes
/// memory at the first shuffle and reuses it. Throws MemoryError where there is none. Threads: one owner.
class Permutation {
 public:
  explicit Permutation(std::int64_t size) noexcept : size_(size) {}

  /// Makes the order that `generator` gives next.
  void shuffle(TorchGenerator& generator);

  /// Item at `place`, in [0, size); only after shuffle.
  [[nodiscard]] std::int64_t operator[](std::int64_t place) const noexcept {
    return narrow() ? static_cast<const std::int32_t*>(items_.get())[place]
                    : static_cast<const std::int64_t*>(items_.get())[place];
  }
  /// Items at `place` and after.
  void copy(std::int64_t place, std::span<std::int64_t> out) const noexcept;

 private:
  struct Free {
    void operator()(void* memory) const noexcept { std::free(memory); }
  };
  [[nodiscard]] bool narrow() const noexcept { return size_ <= std::int64_t{1} << 31; }
  void allocate();

  std::int64_t size_;
  std::unique_ptr<void, Free> items_;
};

}  // namespace infeed
