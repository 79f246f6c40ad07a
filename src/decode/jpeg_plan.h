#pragma once
/// What to decode of a JPEG so that a window comes out as from a full decode.

#include "decode/decoder.h"

namespace infeed {

/// Chroma upsampling looks at one sample beside the one it spreads, which is two pixels; a window cut without them
/// differs from a full decode at its edge.
inline constexpr int kWindowMargin = 2;

/// All in pixels of the stored picture after scaling by scale_num / 8.
struct JpegPlan {
  int scale_num = 8;  ///< 8, 4, 2 or 1
  int full_width = 0, full_height = 0;
  Window window;   ///< what is wanted
  Window decoded;  ///< what is decoded: the window and its margin, within the picture
};

/// `window` lies within the picture of width x height. Unless `exact`, the smallest scale is taken at which the window
/// is at least out_width x out_height.
[[nodiscard]] JpegPlan plan_jpeg(int width, int height, const Window& window, int out_width, int out_height,
                                 bool exact) noexcept;

}  // namespace infeed
