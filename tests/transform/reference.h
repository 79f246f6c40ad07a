#pragma once
/// A plan in double precision, straight from the definition of Pillow's filter.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "transform/plan.h"

namespace infeed::testing {

/// Values in levels, [height, width, 3].
class Reference {
 public:
  using Source = std::function<double(int x, int y, int c)>;

  Reference(const FusedPlan& plan, const Source& source) : width_(plan.out_width) {
    std::vector<Taps> across, down;
    for (int x = 0; x < plan.out_width; ++x) across.push_back(taps(plan.horizontal, plan.flip ? width_ - 1 - x : x));
    for (int y = 0; y < plan.out_height; ++y) down.push_back(taps(plan.vertical, y));
    const Window& w = plan.window;
    std::vector<double> rows;  // of the window, filtered across
    for (int y = w.y; y < w.y + w.height; ++y)
      for (const Taps& taps : across)
        for (int c = 0; c < 3; ++c) rows.push_back(sum(taps, [&](int x) { return source(x, y, c); }));
    const std::size_t row = across.size() * 3;
    for (const Taps& taps : down)
      for (std::size_t i = 0; i < row; ++i)
        values_.push_back(sum(taps, [&](int y) { return rows[static_cast<std::size_t>(y - w.y) * row + i]; }));
  }

  [[nodiscard]] double at(int x, int y, int c) const {
    return values_[static_cast<std::size_t>((y * width_ + x) * 3 + c)];
  }

 private:
  struct Tap {
    int pixel;
    double weight;
  };
  using Taps = std::vector<Tap>;

  static Taps taps(const AxisPlan& axis, int i) {
    const int point = axis.out.begin + i;
    if (point < axis.out.valid_begin || point >= axis.out.valid_end) return {};
    const double scale = static_cast<double>(axis.source.size) / axis.resized, support = std::max(1.0, scale);
    const double center = (point + 0.5) * scale;
    const int from = std::max(0, static_cast<int>(center - support + 0.5));
    const int to = std::min(axis.source.size, static_cast<int>(center + support + 0.5));
    Taps all;
    double total = 0;
    for (int x = from; x < to; ++x) {
      all.push_back({x + axis.source.begin, std::max(0.0, 1 - std::abs((x + 0.5 - center) / support))});
      total += all.back().weight;
    }
    std::erase_if(all,
                  [&](const Tap& t) { return t.pixel < axis.source.valid_begin || t.pixel >= axis.source.valid_end; });
    for (Tap& tap : all) tap.weight /= total;
    return all;
  }

  template <typename At>
  static double sum(const Taps& taps, const At& at) {
    double total = 0;
    for (const Tap& tap : taps)
      if (tap.weight > 0) total += tap.weight * at(tap.pixel);
    return total;
  }

  int width_;
  std::vector<double> values_;
};

}  // namespace infeed::testing
