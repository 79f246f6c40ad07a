#pragma once
/// JPEG files of every kind, made in memory, for tests and benches.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace infeed::testing {

using Bytes = std::vector<std::byte>;

enum class JpegColor { kGray, kYCbCr, kRGB, kCMYK, kYCCK };

struct Sampling {
  int h = 1, v = 1;
};

struct JpegRecipe {
  int width = 64, height = 48;
  JpegColor color = JpegColor::kYCbCr;
  std::array<Sampling, 4> sampling = {};  ///< one a component
  int quality = 90;
  int restart_blocks = 0;  ///< MCUs between restart markers; 0: none
  bool progressive = false;
  int progressive_scans = 0;  ///< keep only this many of the progressive scans; 0: all
  bool arithmetic = false;
  bool own_tables = false;   ///< Huffman tables of the picture's own statistics
  bool scans_apart = false;  ///< sequential, one scan a component
  double grain = 12;         ///< standard deviation of the noise, in levels
  std::uint64_t seed = 1;
};

/// "420 progressive 64x48": for test names and failures.
std::string to_string(const JpegRecipe& recipe);

/// Any colour, sampling, quality from 1 to 100, size up to 300 x 300, restart interval and kind of table; sequential, all
/// components in one scan.
JpegRecipe random_recipe(std::uint64_t seed);

/// A drawing of soft gradients, discs and grain, RGB, rows contiguous.
std::vector<std::uint8_t> draw(int width, int height, double grain, std::uint64_t seed);

/// Encodes draw() by the recipe.
Bytes make_jpeg(const JpegRecipe& recipe);

/// Encodes `rgb` instead.
Bytes make_jpeg(const JpegRecipe& recipe, std::span<const std::uint8_t> rgb);

/// A small 4:2:0 file whose coefficients, times quantisation steps that were changed behind the encoder's back, are far
/// beyond what a picture gives.
Bytes make_wild_jpeg(std::uint64_t seed);

/// The samples that a CMYK file of this RGB picture holds (inverted, as Adobe writes).
std::vector<std::uint8_t> to_cmyk(std::span<const std::uint8_t> rgb);

/// R, G, B, X of the whole picture by libjpeg's plainest route, at scale_num / 8.
std::vector<std::uint8_t> decode_plainly(std::span<const std::byte> jpeg, int scale_num = 8);

struct ExifOptions {
  int orientation = 1;
  bool big_endian = false;
  bool behind_others = false;  ///< a comment and an XMP-like APP1 stand before it
};

/// The file with an Exif APP1 segment behind SOI.
Bytes with_exif(const Bytes& jpeg, ExifOptions options);

/// The file with `segment` (marker and payload; the length is put in) behind SOI.
Bytes with_segment(const Bytes& jpeg, std::uint8_t marker, std::span<const std::byte> payload);

/// Offset of the first segment with this marker; the file's size if there is none.
std::size_t find_segment(std::span<const std::byte> jpeg, std::uint8_t marker);

Bytes first_bytes(const Bytes& file, std::size_t count);
Bytes bytes_of(std::string_view text);

}  // namespace infeed::testing
