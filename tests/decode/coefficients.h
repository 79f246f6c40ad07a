#pragma once
/// All coefficients of a JPEG, by our entropy decoder and by libjpeg's, for tests and benches.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "decode/entropy.h"
#include "decode/huffman_table.h"
#include "decode/scan_bytes.h"

namespace infeed::testing {

/// Keeps its memory from file to file.
class CoefficientReader {
 public:
  /// Of a baseline file with one scan, every block, those beyond the picture's edge included. False where our decoder
  /// leaves the file to libjpeg, as far as its coded bytes say so.
  [[nodiscard]] bool read(std::span<const std::byte> file);
  /// In the order coded; each in rows of 8.
  [[nodiscard]] std::span<const CoefficientBlock> blocks() const noexcept { return blocks_; }

 private:
  HuffmanCache tables_;
  ScanBytes scan_;
  std::vector<CoefficientBlock> blocks_;
};

/// The same by jpeg_read_coefficients, into libjpeg's own arrays; they are copied to `blocks` if it is not null.
void read_by_libjpeg(std::span<const std::byte> file, std::vector<CoefficientBlock>* blocks);

/// The file as baseline JPEG without restarts, coefficients unchanged.
[[nodiscard]] std::vector<std::byte> to_baseline(std::span<const std::byte> file);

}  // namespace infeed::testing
