#include "decode/jpeg_plan.h"

#include <algorithm>
#include <cstdint>

namespace infeed {
namespace {

constexpr int kFullScale = 8;

int scaled_down(int pixels, int scale_num) noexcept {
  return static_cast<int>(std::int64_t{pixels} * scale_num / kFullScale);
}

int scaled_up(int pixels, int scale_num) noexcept {
  return static_cast<int>((std::int64_t{pixels} * scale_num + kFullScale - 1) / kFullScale);
}

// 6/8 and its like have no SIMD kernels and are slower than a full decode.
int choose_scale(const Window& window, int out_width, int out_height) noexcept {
  if (out_width <= 0 || out_height <= 0) return kFullScale;
  for (const int scale_num : {1, 2, 4}) {
    if (scaled_down(window.width, scale_num) >= out_width && scaled_down(window.height, scale_num) >= out_height) {
      return scale_num;
    }
  }
  return kFullScale;
}

Window scaled(const Window& window, int scale_num) noexcept {
  const int x = scaled_down(window.x, scale_num);
  const int y = scaled_down(window.y, scale_num);
  return {x, y, scaled_up(window.x + window.width, scale_num) - x, scaled_up(window.y + window.height, scale_num) - y};
}

Window widened(const Window& window, int margin, int full_width, int full_height) noexcept {
  const int x = std::max(0, window.x - margin);
  const int y = std::max(0, window.y - margin);
  return {x, y, std::min(full_width, window.x + window.width + margin) - x,
          std::min(full_height, window.y + window.height + margin) - y};
}

}  // namespace

JpegPlan plan_jpeg(int width, int height, const Window& window, int out_width, int out_height, bool exact) noexcept {
  JpegPlan plan;
  plan.scale_num = exact ? kFullScale : choose_scale(window, out_width, out_height);
  plan.full_width = scaled_up(width, plan.scale_num);
  plan.full_height = scaled_up(height, plan.scale_num);
  plan.window = scaled(window, plan.scale_num);
  plan.decoded = widened(plan.window, kWindowMargin, plan.full_width, plan.full_height);
  return plan;
}

}  // namespace infeed
