#include "decode/orientation.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace infeed {
namespace {

// As seen, orientation o = transpose first (5..8), then mirror x, then mirror y.
constexpr bool mirrors_x(int orientation) noexcept {
  return orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
}
constexpr bool mirrors_y(int orientation) noexcept {
  return orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
}

struct Steps {
  std::ptrdiff_t x, y;  // bytes in the stored picture per pixel of the seen one
};

void copy_tile(const std::uint8_t* from, Steps steps, PixelBuffer& to, Window tile) {
  for (int y = tile.y; y < tile.y + tile.height; ++y) {
    const std::uint8_t* source = from + y * steps.y + tile.x * steps.x;
    std::uint8_t* out = to.row(y) + std::ptrdiff_t{4} * tile.x;
    for (int x = 0; x < tile.width; ++x, source += steps.x, out += 4) std::memcpy(out, source, 4);
  }
}

}  // namespace

Window stored_window(const Window& seen, int orientation, int stored_width, int stored_height) noexcept {
  Window stored = seen;
  const int seen_width = swaps_axes(orientation) ? stored_height : stored_width;
  const int seen_height = swaps_axes(orientation) ? stored_width : stored_height;
  if (mirrors_x(orientation)) stored.x = seen_width - seen.x - seen.width;
  if (mirrors_y(orientation)) stored.y = seen_height - seen.y - seen.height;
  if (swaps_axes(orientation)) {
    std::swap(stored.x, stored.y);
    std::swap(stored.width, stored.height);
  }
  return stored;
}

PixelWindow turned(const PixelWindow& stored, int orientation, PixelBuffer& buffer) {
  PixelWindow seen = stored;
  Steps steps{4, stored.stride};
  if (swaps_axes(orientation)) {
    std::swap(seen.width, seen.height);
    std::swap(seen.x0, seen.y0);
    std::swap(seen.full_width, seen.full_height);
    std::swap(steps.x, steps.y);
  }
  const std::uint8_t* from = stored.pixels;
  if (mirrors_x(orientation)) {
    seen.x0 = seen.full_width - seen.x0 - seen.width;
    from += steps.x * (seen.width - 1);
    steps.x = -steps.x;
  }
  if (mirrors_y(orientation)) {
    seen.y0 = seen.full_height - seen.y0 - seen.height;
    from += steps.y * (seen.height - 1);
    steps.y = -steps.y;
  }
  buffer.resize(seen.width, seen.height);
  constexpr int kTile = 16;  // a tile of either picture is 16 cache lines
  for (int y = 0; y < seen.height; y += kTile) {
    for (int x = 0; x < seen.width; x += kTile) {
      copy_tile(from, steps, buffer, {x, y, std::min(kTile, seen.width - x), std::min(kTile, seen.height - y)});
    }
  }
  seen.pixels = buffer.row(0);
  seen.stride = buffer.stride();
  return seen;
}

}  // namespace infeed
