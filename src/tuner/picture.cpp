#include "tuner/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>

#include "tuner/chart.h"

// A line for each kind, threads, prefetch and pinning. Colours that colour-blind people tell apart, each with a mark of its own.

namespace infeed {
namespace {

constexpr double kWidth = 860, kHeight = 520, kLeft = 72, kPlotWidth = 560, kLegend = 664;
constexpr Frame kRateFrame{kLeft, 92, kPlotWidth, 230};
constexpr Frame kMemoryFrame{kLeft, 368, kPlotWidth, 96};
constexpr double kRow = 24;  // of the legend

struct Look {
  const char* colour;
  const char* mark;  ///< a path around 0,0
};
constexpr const char* kDisc = "M-4.5,0 a4.5,4.5 0 1,0 9,0 a4.5,4.5 0 1,0 -9,0";
constexpr Look kInlineLook{"#555555", "M0,-5.5 L5.5,0 L0,5.5 L-5.5,0 Z"};
constexpr Look kLooks[] = {{"#0072b2", kDisc},
                           {"#d55e00", "M-4,-4 h8 v8 h-8 Z"},
                           {"#009e73", "M0,-5.5 L5,4 L-5,4 Z"},
                           {"#cc79a7", "M0,5.5 L5,-4 L-5,-4 Z"},
                           {"#e69f00", "M-4,-4 h8 v8 h-8 Z"},
                           {"#56b4e9", kDisc}};

struct Line {
  std::string name;
  Look look{};
  std::vector<const PicturePoint*> points = {};
};

std::string name_of(const WorkerSetting& setting) {
  if (setting.claimants() == 0) return setting.str();
  std::string name = to_string(setting.kind);
  if (setting.threads > 1) name += fmt::format(", {} threads", setting.threads);
  if (setting.prefetch > 0) name += fmt::format(", prefetch {}", setting.prefetch);
  return setting.pinned ? name : name + ", pageable";
}

std::vector<Line> lines_of(const std::vector<PicturePoint>& points) {
  std::vector<Line> lines;
  std::size_t looks = 0;
  for (const PicturePoint& point : points) {
    const std::string name = name_of(point.setting);
    auto line = std::find_if(lines.begin(), lines.end(), [&](const Line& other) { return other.name == name; });
    if (line == lines.end()) {
      const bool serial = point.setting.claimants() == 0;
      lines.push_back({name, serial ? kInlineLook : kLooks[looks++ % std::size(kLooks)]});
      line = std::prev(lines.end());
    }
    line->points.push_back(&point);
  }
  for (Line& line : lines)
    std::sort(line.points.begin(), line.points.end(),
              [](const auto* a, const auto* b) { return a->setting.workers < b->setting.workers; });
  return lines;
}

std::string mark(const Look& look, double x, double y) {
  return fmt::format(
      "<path class=\"mark\" d=\"{}\" transform=\"translate({:.1f},{:.1f})\" fill=\"{}\" stroke=\"white\"/>\n",
      look.mark, x, y, look.colour);
}

std::string text_at(double x, double y, const std::string& text, const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, text);
}

/// The unit that memory is told in.
struct Unit {
  const char* name;
  double bytes;
};
Unit unit_of(double most_bytes) { return most_bytes < 10e9 ? Unit{"MB", 1e6} : Unit{"GB", 1e9}; }

class Drawing {
 public:
  explicit Drawing(const RatePicture& picture)
      : picture_(picture),
        lines_(lines_of(picture.points)),
        unit_(unit_of(most_of(&PicturePoint::memory_bytes))),
        rates_(kRateFrame, counts(), most_rate()),
        memory_(kMemoryFrame, counts(), most_of(&PicturePoint::memory_bytes) / unit_.bytes) {}

  [[nodiscard]] std::string draw() const {
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\" fill=\"#333\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, kHeight);
    text += heading() + rates_.axes("samples/s", false) +
            memory_.axes(fmt::format("memory of all processes, {}", unit_.name), true);
    text += recommended_count() + model();
    for (const Line& line : lines_) text += rates(line) + memory(line);
    return text + ring() + legend() + "</svg>\n";
  }

 private:
  [[nodiscard]] std::vector<int> counts() const {
    std::vector<int> counts;
    for (const PicturePoint& point : picture_.points) counts.push_back(point.setting.workers);
    return counts;
  }
  [[nodiscard]] double most_of(double PicturePoint::*which) const {
    double most = 0;
    for (const PicturePoint& point : picture_.points) most = std::max(most, point.*which);
    return most;
  }
  [[nodiscard]] double most_rate() const {
    double most = 0;
    for (const PicturePoint& point : picture_.points)
      most = std::max(most, point.samples_per_s * (1 + point.spread / 2));
    return most;
  }
  [[nodiscard]] const PicturePoint* chosen() const {
    const auto found = std::find_if(picture_.points.begin(), picture_.points.end(),
                                    [&](const PicturePoint& point) { return point.setting == picture_.chosen; });
    return found == picture_.points.end() ? nullptr : &*found;
  }

  [[nodiscard]] std::string heading() const {
    std::string text = text_at(kLeft, 28, picture_.title, " font-size=\"17\" font-weight=\"bold\"");
    const PicturePoint* point = chosen();
    if (point == nullptr) return text;
    return text + text_at(kLeft, 50,
                          fmt::format("Recommended: {}, {} samples/s in {} {}", point->setting.str(),
                                      with_thousands(point->samples_per_s),
                                      with_thousands(point->memory_bytes / unit_.bytes), unit_.name));
  }

  [[nodiscard]] std::string recommended_count() const {
    std::string text;
    for (const Frame& frame : {kRateFrame, kMemoryFrame})
      text += fmt::format("<path d=\"M{:.1f},{:.1f} v{:.1f}\" stroke=\"#bbb\" stroke-dasharray=\"2 3\"/>\n",
                          rates_.x(picture_.chosen.workers), frame.top, frame.height);
    return text;
  }

  // Kinds of worker differ in memory only: one line for all that the model holds for equal.
  [[nodiscard]] std::string model() const {
    if (!picture_.model) return {};
    std::vector<std::string> drawn;
    for (const Line& line : lines_) {
      WorkerSetting setting = line.points.front()->setting;
      if (setting.claimants() == 0) continue;
      std::string points;
      for (setting.workers = 1; setting.workers <= std::max(1, most_workers()); ++setting.workers)
        points += fmt::format("{:.1f},{:.1f} ", rates_.x(setting.workers),
                              rates_.y(std::min(most_rate(), predict(*picture_.model, setting).samples_per_s)));
      if (std::find(drawn.begin(), drawn.end(), points) == drawn.end()) drawn.push_back(std::move(points));
    }
    std::string text;
    for (const std::string& points : drawn)
      text += fmt::format(
          "<polyline points=\"{}\" fill=\"none\" stroke=\"#888\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n",
          points);
    return text;
  }
  [[nodiscard]] int most_workers() const {
    const std::vector<int> all = counts();
    return *std::max_element(all.begin(), all.end());
  }

  [[nodiscard]] std::string rates(const Line& line) const {
    std::string points, text;
    for (const PicturePoint* point : line.points) {
      const double x = rates_.x(point->setting.workers), rate = point->samples_per_s, half = rate * point->spread / 2;
      points += fmt::format("{:.1f},{:.1f} ", x, rates_.y(rate));
      text +=
          fmt::format("<path d=\"M{0:.1f},{1:.1f} V{2:.1f}\" stroke=\"{3}\" stroke-width=\"1.5\" opacity=\"0.7\"/>\n",
                      x, rates_.y(rate - half), rates_.y(rate + half), line.look.colour) +
          mark(line.look, x, rates_.y(rate));
    }
    return polyline(points, line.look.colour) + text;
  }

  [[nodiscard]] std::string memory(const Line& line) const {
    std::string points, text;
    for (const PicturePoint* point : line.points) {
      if (point->memory_bytes <= 0) continue;
      const double x = memory_.x(point->setting.workers), y = memory_.y(point->memory_bytes / unit_.bytes);
      points += fmt::format("{:.1f},{:.1f} ", x, y);
      text += mark(line.look, x, y);
    }
    return polyline(points, line.look.colour) + text;
  }
  [[nodiscard]] static std::string polyline(const std::string& points, const char* colour) {
    return fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points, colour);
  }

  [[nodiscard]] std::string ring() const {
    const PicturePoint* point = chosen();
    if (point == nullptr) return {};
    return ring_at(rates_.x(point->setting.workers), rates_.y(point->samples_per_s));
  }
  [[nodiscard]] static std::string ring_at(double x, double y) {
    return fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"10\" fill=\"none\" stroke=\"#111\" stroke-width=\"2\"/>\n", x, y);
  }

  [[nodiscard]] std::string legend() const {
    constexpr double kSign = kLegend + 10, kText = kLegend + 30;
    double y = kRateFrame.top + 8;
    std::string text;
    for (const Line& line : lines_) {
      text += mark(line.look, kSign, y) + text_at(kText, y + 4, line.name);
      y += kRow;
    }
    y += kRow / 2;
    text += ring_at(kSign, y) + text_at(kText, y + 4, "recommended");
    y += kRow;
    text += fmt::format("<path d=\"M{:.1f},{:.1f} v16\" stroke=\"#333\"/>\n", kSign, y - 8) +
            text_at(kText, y + 4, "spread of the runs");
    y += kRow;
    if (!picture_.model) return text;
    return text +
           fmt::format(
               "<path d=\"M{:.1f},{:.1f} h24\" stroke=\"#888\" stroke-width=\"1.5\" stroke-dasharray=\"6 4\"/>\n",
               kSign - 12, y) +
           text_at(kText, y + 4, "the model");
  }

  const RatePicture& picture_;
  std::vector<Line> lines_;
  Unit unit_;
  Chart rates_, memory_;
};

}  // namespace

std::string draw(const RatePicture& picture) { return Drawing(picture).draw(); }

}  // namespace infeed
