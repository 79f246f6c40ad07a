#include "transform/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "infeed/base/error.h"

namespace infeed {
namespace {

// Python's round(): halves to even.
int round_even(double value) { return static_cast<int>(std::nearbyint(value)); }

GridRange whole(int size) { return {.begin = 0, .size = size, .valid_begin = 0, .valid_end = size}; }

void crop_axis(AxisPlan& axis, int begin, int size) {
  GridRange& out = axis.out;
  out.begin += begin;
  out.size = size;
  out.valid_begin = std::clamp(out.valid_begin, out.begin, out.begin + size);
  out.valid_end = std::clamp(out.valid_end, out.valid_begin, out.begin + size);
}

// Before the resize `out` is a part of the picture's own grid; it becomes the source of a new one.
void resize_axis(AxisPlan& axis, int size) {
  axis.source = axis.out;
  axis.resized = size;
  axis.out = whole(size);
}

int center_offset(int size, int kept) { return kept > size ? -((kept - size) / 2) : round_even((size - kept) / 2.0); }

bool is_identity(const AxisPlan& axis) { return axis.resized == axis.source.size; }

// Pixels under the taps of the valid outputs, at least one: [begin, end).
std::array<int, 2> pixels_needed(const AxisPlan& axis, int picture) {
  const GridRange& source = axis.source;
  const int first = std::max(axis.out.begin, axis.out.valid_begin);
  const int last = std::max(first, std::min(axis.out.begin + axis.out.size, axis.out.valid_end) - 1);
  const double scale = static_cast<double>(source.size) / axis.resized, support = std::max(1.0, scale);
  int begin = static_cast<int>(std::max(0.0, (first + 0.5) * scale - support + 0.5));
  int end = static_cast<int>(std::min<double>(source.size, (last + 0.5) * scale + support + 0.5));
  if (is_identity(axis)) begin = first, end = last + 1;
  begin = std::clamp(begin + source.begin, source.valid_begin, source.valid_end);
  end = std::clamp(end + source.begin, begin, source.valid_end);
  begin = std::clamp(begin, 0, picture - 1);  // padding alone needs no pixel; one is decoded all the same
  return {begin, std::clamp(end, begin + 1, picture)};
}

void check_addressable(std::int64_t width, std::int64_t height) {
  constexpr std::int64_t kMostValues = std::numeric_limits<std::int32_t>::max() / 3;
  if (width <= kMostValues && height <= kMostValues) return;
  throw ConfigError(
      fmt::format("a picture resized to {} x {} is more than {} pixels a side. Use Resize with height and "
                  "width, or leave such extreme pictures out.",
                  width, height, kMostValues));
}

struct Draws {  // of one RandomResizedCrop: always as many
  std::array<double, 10> area, log_ratio;
  double left, top;
};

Draws draw(const RandomResizedCrop& op, Philox& rng) {
  Draws draws;
  const double low = std::log(op.ratio[0]), high = std::log(op.ratio[1]);
  for (std::size_t i = 0; i < draws.area.size(); ++i) {
    draws.area[i] = rng.uniform(op.scale[0], op.scale[1]);
    draws.log_ratio[i] = rng.uniform(low, high);
  }
  draws.left = rng.uniform();
  draws.top = rng.uniform();
  return draws;
}

// The largest central crop within the bounds of the ratio.
void crop_fallback(const RandomResizedCrop& op, PlanBuilder& plan) {
  const int width = plan.width(), height = plan.height();
  const double ratio = static_cast<double>(width) / height;
  int w = width, h = height;
  if (ratio < op.ratio[0])
    h = std::clamp(round_even(w / op.ratio[0]), 1, height);
  else if (ratio > op.ratio[1])
    w = std::clamp(round_even(h * op.ratio[1]), 1, width);
  plan.crop((width - w) / 2, (height - h) / 2, w, h);
}

void crop_random(const RandomResizedCrop& op, const Draws& draws, PlanBuilder& plan) {
  const int width = plan.width(), height = plan.height();
  for (std::size_t i = 0; i < draws.area.size(); ++i) {
    const double area = draws.area[i] * width * height, ratio = std::exp(draws.log_ratio[i]);
    const double w = std::nearbyint(std::sqrt(area * ratio)), h = std::nearbyint(std::sqrt(area / ratio));
    if (w < 1 || w > width || h < 1 || h > height) continue;
    const double left = std::floor(draws.left * (width - w + 1)), top = std::floor(draws.top * (height - h + 1));
    return plan.crop(static_cast<int>(left), static_cast<int>(top), static_cast<int>(w), static_cast<int>(h));
  }
  crop_fallback(op, plan);
}

struct Apply {
  PlanBuilder& plan;
  Philox& rng;

  void operator()(const RandomResizedCrop& op) const {
    crop_random(op, draw(op, rng), plan);
    plan.resize(op.width, op.height);
  }
  void operator()(const Resize& op) const { plan.resize(op); }
  void operator()(const CenterCrop& op) const { plan.center_crop(op); }
  void operator()(const RandomHorizontalFlip& op) const {
    if (rng.bernoulli(op.p)) plan.flip();
  }
  void operator()(const Normalize&) const {}
  void operator()(const ToDType&) const {}
  void operator()(const ToLayout&) const {}
};

}  // namespace

PlanBuilder::PlanBuilder(int width, int height)
    : picture_width_(width),
      picture_height_(height),
      horizontal_{.source = whole(width), .resized = width, .out = whole(width)},
      vertical_{.source = whole(height), .resized = height, .out = whole(height)} {
  if (width < 1 || height < 1)
    throw ConfigError(fmt::format("a picture of {} x {} has no pixels to transform.", width, height));
}

// A flip so far means that x counts from the other side.
void PlanBuilder::crop(int x, int y, int width, int height) {
  crop_axis(horizontal_, flip_ ? this->width() - x - width : x, width);
  crop_axis(vertical_, y, height);
}

void PlanBuilder::center_crop(const CenterCrop& op) {
  crop(center_offset(width(), op.width), center_offset(height(), op.height), op.width, op.height);
}

void PlanBuilder::resize(int width, int height) {
  resize_axis(horizontal_, width);
  resize_axis(vertical_, height);
}

void PlanBuilder::resize(const Resize& op) {
  if (op.width > 0) return resize(op.width, op.height);
  const std::int64_t shorter = std::min(width(), height()), longer = std::max(width(), height());
  const auto size = std::int64_t{op.height};
  const auto long_side = static_cast<std::int64_t>(static_cast<double>(size * longer) / static_cast<double>(shorter));
  check_addressable(size, long_side);
  const int small = op.height, large = static_cast<int>(long_side);
  width() <= height() ? resize(small, large) : resize(large, small);
}

FusedPlan PlanBuilder::finish() const {
  const auto [left, right] = pixels_needed(horizontal_, picture_width_);
  const auto [top, bottom] = pixels_needed(vertical_, picture_height_);
  return {.window = {.x = left, .y = top, .width = right - left, .height = bottom - top},
          .horizontal = horizontal_,
          .vertical = vertical_,
          .out_width = width(),
          .out_height = height(),
          .flip = flip_};
}

FusedPlan plan_sample(const Compose& chain, int width, int height, Philox rng) {
  PlanBuilder plan(width, height);
  for (const ImageOp& op : chain.ops()) std::visit(Apply{plan, rng}, op);
  return plan.finish();
}

}  // namespace infeed
