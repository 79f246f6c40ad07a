#pragma once
/// Images from bytes: JPEG and PNG, told apart by content.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/base/export.h"

namespace infeed {

/// What a transform resizes.
enum class DecodePath : std::uint8_t {
  kExact,  ///< R, G, B as libjpeg-turbo gives them
  kPlanes  ///< Y, Cb, Cr as coded: chroma is spread and colours are converted at the result's size. Some 5 % faster, and
           ///< what a cache keeps; on average 0.3 levels (of 255) from exact where no colour clips. `exact` has no say.
};

[[nodiscard]] INFEED_API std::string to_string(DecodePath path);
/// "exact" or "planes". Throws ConfigError.
[[nodiscard]] INFEED_API DecodePath decode_path_from_string(std::string_view name);

struct DecodeOptions {
  /// Pixels equal a full decode's, bit for bit, whatever window is decoded. False lets large reductions use a DCT scale
  /// of 1/2, 1/4 or 1/8: up to 15 % faster, pixels differ slightly. Default true.
  bool exact = true;
  /// Turn the picture as its EXIF orientation says. Default true.
  bool orient = true;
  /// Give what can be decoded of a truncated or damaged file (the rest is gray) instead of an error. Default false.
  bool allow_truncated = false;
  /// Larger pictures (width x height) are refused before memory is taken. Default: 178,956,970, where Pillow refuses.
  std::int64_t max_pixels = 178'956'970;
  /// kPlanes serves ordinary baseline JPEG (gray, 4:4:4, 4:2:2, 4:4:0, 4:2:0) that is not turned; other files take the
  /// exact path. Only for what is transformed: decode_image() gives exact pixels always. Default kExact.
  DecodePath path = DecodePath::kExact;
};

enum class ImageFormat : std::uint8_t { kJPEG, kPNG };

struct ImageInfo {
  ImageFormat format = ImageFormat::kJPEG;
  int width = 0;        ///< pixels, after orientation
  int height = 0;       ///< pixels, after orientation
  int orientation = 1;  ///< EXIF 1..8, 1 where absent or out of range
};

/// uint8 [height, width, 3], RGB, rows contiguous.
struct Image {
  int width = 0;
  int height = 0;
  std::vector<std::uint8_t> pixels;
};

/// Reads the header only. Throws DecodeError.
[[nodiscard]] INFEED_API ImageInfo probe_image(std::span<const std::byte> bytes, const DecodeOptions& options = {});

/// Decodes the whole picture to RGB (gray is spread, CMYK and YCCK are converted as Pillow does, alpha is dropped).
/// Throws DecodeError.
[[nodiscard]] INFEED_API Image decode_image(std::span<const std::byte> bytes, const DecodeOptions& options = {});

}  // namespace infeed
