#include "tuner/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace infeed {
namespace {

constexpr int kLinearUpTo = 8;     // workers
constexpr double kRowHeight = 48;  // pixels between ticks, about

double place(double workers, int most) { return most <= kLinearUpTo ? workers : std::log2(1 + workers); }

double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) return factor * power;
  }
  return 10 * power;
}

}  // namespace

Chart::Chart(Frame frame, std::vector<int> counts, double most) : frame_(frame), counts_(std::move(counts)) {
  std::sort(counts_.begin(), counts_.end());
  counts_.erase(std::unique(counts_.begin(), counts_.end()), counts_.end());
  if (counts_.empty()) counts_ = {0};
  const double largest = most > 0 ? most : 1;
  step_ = round_step(largest * kRowHeight / frame_.height);
  top_ = step_ * std::ceil(largest * 1.02 / step_);
}

double Chart::x(double workers) const {
  constexpr double kInset = 24;
  const int most = std::max(1, counts_.back());
  return frame_.left + kInset + place(workers, most) / place(most, most) * (frame_.width - 2 * kInset);
}

double Chart::y(double value) const { return frame_.top + frame_.height * (1 - value / top_); }

std::string Chart::axes(const std::string& name, bool with_counts) const {
  const double right = frame_.left + frame_.width, bottom = frame_.top + frame_.height;
  std::string text;
  for (int line = 0; line * step_ <= top_ * 1.001; ++line) {
    const double value = line * step_;
    text += fmt::format(
        "<path d=\"M{0:.1f},{2:.1f} H{1:.1f}\" stroke=\"{3}\"/>"
        "<text x=\"{4:.1f}\" y=\"{5:.1f}\" text-anchor=\"end\">{6}</text>\n",
        frame_.left, right, y(value), value == 0 ? "#555" : "#e4e4e4", frame_.left - 8, y(value) + 4,
        with_thousands(value));
  }
  text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"bold\">{}</text>\n", frame_.left, frame_.top - 10,
                      name);
  if (!with_counts) return text;
  for (const int workers : counts_)
    text += fmt::format(
        "<path d=\"M{0:.1f},{1:.1f} v5\" stroke=\"#555\"/>"
        "<text x=\"{0:.1f}\" y=\"{2:.1f}\" text-anchor=\"middle\">{3}</text>\n",
        x(workers), bottom, bottom + 19, workers);
  return text +
         fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" font-weight=\"bold\">workers</text>\n",
                     (frame_.left + right) / 2, bottom + 40);
}

std::string with_thousands(double value) {
  std::string digits = fmt::format("{:.{}f}", value, value > 0 && value < 10 && value != std::floor(value) ? 1 : 0);
  if (digits.find('.') != std::string::npos) return digits;
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  return digits;
}

}  // namespace infeed
