#pragma once
/// Between a picture as stored and as seen, by its EXIF orientation.
///
/// Orientation o of a stored picture says how to turn it:
///   1 as it is      2 mirror left-right   3 half turn             4 mirror top-bottom
///   5 transpose     6 quarter turn right  7 transpose, half turn  8 quarter turn left

#include "decode/decoder.h"
#include "decode/pixel_buffer.h"

namespace infeed {

/// Whether width and height change places.
[[nodiscard]] constexpr bool swaps_axes(int orientation) noexcept { return orientation >= 5; }

/// The rectangle of the stored picture, stored_width x stored_height, that `seen` shows.
[[nodiscard]] Window stored_window(const Window& seen, int orientation, int stored_width, int stored_height) noexcept;

/// Turns stored pixels into `buffer`; offsets and sizes of the result are those of the picture as seen.
[[nodiscard]] PixelWindow turned(const PixelWindow& stored, int orientation, PixelBuffer& buffer);

}  // namespace infeed
