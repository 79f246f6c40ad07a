#pragma once
/// Image transforms, as torchvision names them. A list of them becomes one fused pass (transform/compose.h).

#include <array>
#include <string_view>
#include <variant>

#include "infeed/base/dtype.h"
#include "infeed/base/export.h"

namespace infeed {

/// Draws a crop of `scale` of the area and `ratio` width / height, resized to width x height (torchvision's
/// RandomResizedCrop: ten draws, then a center crop).
struct RandomResizedCrop {
  int height = 224, width = 224;
  std::array<double, 2> scale = {0.08, 1.0};
  std::array<double, 2> ratio = {3.0 / 4.0, 4.0 / 3.0};
};
/// Shorter side to `size` (width 0) or exactly height x width.
struct Resize {
  int height = 256, width = 0;  ///< width 0: `height` is the size of the shorter side
};
/// The middle height x width; a smaller picture is padded with zeros.
struct CenterCrop {
  int height = 224, width = 224;
};
struct RandomHorizontalFlip {
  double p = 0.5;
};
/// (value / 255 - mean) / std per channel, R G B. The output becomes float32 unless ToDType says otherwise.
struct Normalize {
  std::array<double, 3> mean = {0.485, 0.456, 0.406};
  std::array<double, 3> std = {0.229, 0.224, 0.225};
};
/// uint8, float16, bfloat16 or float32. Floats hold value / 255, as torchvision's ToTensor, unless Normalize is there.
struct ToDType {
  DType dtype = DType::kFloat32;
};
enum class ImageLayout { kCHW, kHWC };
/// Default: CHW.
struct ToLayout {
  ImageLayout layout = ImageLayout::kCHW;
};

using ImageOp = std::variant<RandomResizedCrop, Resize, CenterCrop, RandomHorizontalFlip, Normalize, ToDType, ToLayout>;

inline RandomResizedCrop random_resized_crop(int size) { return {.height = size, .width = size}; }
inline Resize resize(int shorter_side) { return {.height = shorter_side, .width = 0}; }
inline Resize resize(int height, int width) { return {.height = height, .width = width}; }
inline CenterCrop center_crop(int size) { return {.height = size, .width = size}; }
inline RandomHorizontalFlip random_horizontal_flip(double p = 0.5) { return {.p = p}; }
inline Normalize normalize() { return {}; }
inline Normalize normalize(std::array<double, 3> mean, std::array<double, 3> std) { return {.mean = mean, .std = std}; }
inline ToDType to_dtype(DType dtype) { return {.dtype = dtype}; }
inline ToLayout to_layout(ImageLayout layout) { return {.layout = layout}; }

}  // namespace infeed
