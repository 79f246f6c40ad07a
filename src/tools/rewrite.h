#pragma once
/// JPEG to JPEG: the same coefficients in another code, or fewer pixels.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace infeed {

struct JpegKind {
  bool jpeg = false;
  bool progressive = false, arithmetic = false;
};

/// By the first frame header; jpeg false where there is none.
[[nodiscard]] JpegKind kind_of(std::span<const std::byte> file) noexcept;

/// Baseline Huffman code of the same coefficients; comments and all APP segments (EXIF, ICC, XMP) are copied.
/// `restart_rows`: a restart marker at each row of MCUs. Throws DataError where the file is damaged, so that nothing is
/// lost silently.
[[nodiscard]] std::vector<std::byte> recode(std::span<const std::byte> file, bool restart_rows);

/// Whether both hold the same coefficients and quantisation. Throws DataError.
[[nodiscard]] bool same_coefficients(std::span<const std::byte> a, std::span<const std::byte> b);

/// The picture turned as its EXIF orientation says, its shorter side `shorter_side`, 4:2:0 at `quality`; of the segments
/// only the ICC profile stays. Loses detail. Throws DecodeError, DataError.
[[nodiscard]] std::vector<std::byte> shrink(std::span<const std::byte> file, int shorter_side, int quality);

}  // namespace infeed
