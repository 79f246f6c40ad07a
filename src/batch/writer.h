#pragma once
/// Writes a collated batch: its arrays and, at the extent's start, the header that describes them (format.h).

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "batch/format.h"
#include "infeed/base/array_view.h"

namespace infeed {

/// One batch. One owner, one thread. Until finish() the extent holds no valid header.
class BatchWriter {
 public:
  /// `extent` starts at a multiple of 128. Throws MemoryError where not even the header fits.
  explicit BatchWriter(std::span<std::byte> extent);

  /// Appends an array, 128-byte aligned, not initialised. Throws ConfigError on a bad or repeated name or shape,
  /// MemoryError where the extent ends, naming both sizes and the option extent_bytes.
  ArrayView add(std::string_view name, DType dtype, const Shape& shape);

  /// Writes the header; returns the bytes used from the extent's start.
  [[nodiscard]] std::size_t finish() noexcept;

 private:
  void check_name(std::string_view name) const;

  std::span<std::byte> extent_;
  std::vector<ArrayRecord> records_;
  std::size_t end_ = kArraysBegin;
};

}  // namespace infeed
