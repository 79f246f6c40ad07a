#pragma once
/// PNG files of every kind, made in memory, with the RGB that they should decode to.

#include <cstdint>
#include <string>
#include <vector>

#include "decode/jpeg_maker.h"

namespace infeed::testing {

enum class PngColor { kGray, kGrayAlpha, kPalette, kRGB, kRGBA };

struct PngRecipe {
  int width = 64, height = 48;
  PngColor color = PngColor::kRGB;
  int bit_depth = 8;
  bool interlaced = false;
  bool transparent = false;  ///< a tRNS chunk
  int orientation = 0;       ///< an eXIf chunk; 0: none
  std::uint64_t seed = 1;
};

std::string to_string(const PngRecipe& recipe);

struct PngFile {
  Bytes bytes;
  std::vector<std::uint8_t> rgb;  ///< what it decodes to, before orientation
};

PngFile make_png(const PngRecipe& recipe);

}  // namespace infeed::testing
