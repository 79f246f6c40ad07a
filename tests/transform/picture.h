#pragma once
/// Synthetic pictures, windows of them as the decoder gives them, and results with guards round them.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "transform/fused.h"

namespace infeed::testing {

/// Channel c of pixel (x, y); the same formula as pillow_golden.py. Noise, a saw, or black and white, by seed.
inline std::uint8_t pixel(int x, int y, int c, int seed) {
  const auto u = [](int v) { return static_cast<std::uint32_t>(v); };
  std::uint32_t h = u(x) * 0x9E3779B1U ^ u(y) * 0x85EBCA77U ^ u(c + 3 * seed) * 0xC2B2AE3DU;
  h ^= h >> 15;
  h *= 0x2C1B3C6DU;
  h ^= h >> 12;
  const std::uint32_t noise = h & 255U;
  if (seed % 3 == 0) return static_cast<std::uint8_t>(noise);
  if (seed % 3 == 1) return static_cast<std::uint8_t>((u(x) * 5 + u(y) * 3 + u(c) * 40) & 255U);
  return noise > 127 ? 255 : 0;
}

/// Owns the pixels of a window; nothing outside it exists, so that a kernel which reads there is caught.
class HeldPixels {
 public:
  using Source = std::function<std::uint8_t(int x, int y, int c)>;

  HeldPixels(const Window& window, const Source& source) {
    const auto row = static_cast<std::size_t>(window.width) * 4 + 64;
    bytes_.resize(row * static_cast<std::size_t>(window.height), 0x5A);
    for (int y = 0; y < window.height; ++y)
      for (int x = 0; x < window.width; ++x)
        for (int c = 0; c < 3; ++c)
          bytes_[static_cast<std::size_t>(y) * row + static_cast<std::size_t>(4 * x + c)] =
              source(window.x + x, window.y + y, c);
    pixels = {.pixels = bytes_.data(),
              .stride = static_cast<std::ptrdiff_t>(row),
              .width = window.width,
              .height = window.height,
              .x0 = window.x,
              .y0 = window.y};
  }
  HeldPixels(const Window& window, int seed)
      : HeldPixels(window, [seed](int x, int y, int c) { return pixel(x, y, c, seed); }) {}

  PixelWindow pixels;

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Memory for a result, `offset` bytes behind a multiple of 64, guarded on both sides.
class GuardedOutput {
 public:
  GuardedOutput(const Compose& chain, const FusedPlan& plan, std::size_t offset = 0) {
    const std::int64_t h = plan.out_height, w = plan.out_width;
    const Shape shape = chain.layout() == ImageLayout::kCHW ? Shape{3, h, w} : Shape{h, w, 3};
    size_ = static_cast<std::size_t>(shape.numel()) * itemsize(chain.dtype());
    bytes_.assign(size_ + 2 * kGuard + 128, kFill);
    const auto at = reinterpret_cast<std::uintptr_t>(bytes_.data()) + kGuard;
    begin_ = kGuard + (64 - at % 64) % 64 + offset;
    view = ArrayView(bytes_.data() + begin_, chain.dtype(), shape);
  }

  [[nodiscard]] bool guards_intact() const {
    const auto untouched = [](std::byte b) { return b == kFill; };
    const auto at = [this](std::size_t i) { return bytes_.begin() + static_cast<std::ptrdiff_t>(i); };
    return std::all_of(at(0), at(begin_), untouched) && std::all_of(at(begin_ + size_), bytes_.end(), untouched);
  }
  [[nodiscard]] std::vector<std::byte> bytes() const { return {view.data, view.data + size_}; }

  template <typename T>
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> all(size_ / sizeof(T));
    std::memcpy(all.data(), view.data, size_);
    return all;
  }

  ArrayView view;

 private:
  static constexpr std::size_t kGuard = 256;
  static constexpr std::byte kFill{0xA5};
  std::size_t size_ = 0, begin_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace infeed::testing
