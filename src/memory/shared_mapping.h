#pragma once
/// A memory file's bytes, shared with every process that maps it.

#include <cstddef>

#include "memory/memfd.h"

namespace infeed {

/// Unmaps its bytes, which stay out of core dumps; the descriptor may be closed before. Resource: moves, does not copy.
class SharedMapping {
 public:
  SharedMapping() = default;
  /// The file's first `bytes`. Throws MemoryError.
  SharedMapping(const Memfd& file, std::size_t bytes, bool writable);
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  /// Page aligned; not to be written unless `writable`.
  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace infeed
