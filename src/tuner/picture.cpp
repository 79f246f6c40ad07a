#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "infeed/tuner/sweep.h"

// Rate over workers. One line a kind, threads, prefetch and pinning; measured points, the model between them.

namespace infeed {
namespace {

constexpr double kWidth = 760, kHeight = 420, kLeft = 70, kRight = 200, kTop = 30, kBottom = 50;
constexpr const char* kColours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd",
                                    "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"};

class Picture {
 public:
  explicit Picture(const SweepReport& report) : report_(report) {
    for (const SweepRow& row : report.rows) {
      if (row.figures.samples_per_s <= 0) continue;
      most_workers_ = std::max(most_workers_, row.setting.workers);
      most_rate_ = std::max(most_rate_, row.figures.samples_per_s * (1 + row.spread / 2));
      WorkerSetting form = row.setting;
      form.workers = 1;  // a line's name counts no workers
      lines_[name_of(form)].push_back(&row);
    }
  }

  [[nodiscard]] std::string draw() {
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
        "font-family=\"sans-serif\" "
        "font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        kWidth, kHeight);
    text += axes();
    std::size_t line = 0;
    for (const auto& [name, rows] : lines_) text += draw_line(name, rows, line++);
    text += chosen_mark();
    return text + "</svg>\n";
  }

 private:
  static std::string name_of(const WorkerSetting& form) {
    if (form.claimants() == 0) return form.str();
    std::string name = to_string(form.kind);
    if (form.threads > 1) name += fmt::format(", {} threads", form.threads);
    if (form.prefetch > 0) name += fmt::format(", prefetch {}", form.prefetch);
    return form.pinned ? name : name + ", pageable";
  }
  [[nodiscard]] double x(double workers) const {
    return kLeft + workers / std::max(1, most_workers_) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double rate) const {
    return kHeight - kBottom - rate / (most_rate_ * 1.05) * (kHeight - kTop - kBottom);
  }

  [[nodiscard]] std::string axes() const {
    std::string text = fmt::format("<path d=\"M{:.1f},{:.1f} V{:.1f} H{:.1f}\" fill=\"none\" stroke=\"black\"/>\n",
                                   kLeft, kTop, kHeight - kBottom, kWidth - kRight);
    constexpr int kTicks = 5;
    for (int tick = 0; tick <= kTicks; ++tick) {
      const double rate = most_rate_ * tick / kTicks;
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.0f}</text>\n", kLeft - 6, y(rate) + 4,
                          rate);
    }
    for (const int workers : counts())
      text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", x(workers),
                          kHeight - kBottom + 18, workers);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">workers</text>\n",
                        (kLeft + kWidth - kRight) / 2, kHeight - 12);
    return text + fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">samples/s</text>\n", 10.0, kTop - 12);
  }

  [[nodiscard]] std::vector<int> counts() const {
    std::vector<int> counts;
    for (const SweepRow& row : report_.rows) counts.push_back(row.setting.workers);
    std::sort(counts.begin(), counts.end());
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    return counts;
  }

  [[nodiscard]] std::string draw_line(const std::string& name, std::vector<const SweepRow*> rows,
                                      std::size_t line) const {
    std::sort(rows.begin(), rows.end(),
              [](const SweepRow* a, const SweepRow* b) { return a->setting.workers < b->setting.workers; });
    const char* colour = kColours[line % std::size(kColours)];
    std::string points, text;
    for (const SweepRow* row : rows) {
      const double at = x(row->setting.workers), rate = row->figures.samples_per_s, half = rate * row->spread / 2;
      points += fmt::format("{:.1f},{:.1f} ", at, y(rate));
      text += fmt::format(
          "<circle cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3.5\" fill=\"{4}\"/><path d=\"M{0:.1f},{2:.1f} V{3:.1f}\" "
          "stroke=\"{4}\"/>\n",
          at, y(rate), y(rate - half), y(rate + half), colour);
    }
    text += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points, colour);
    const double legend = kTop + 18 * static_cast<double>(line);
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n", kWidth - kRight + 14, legend + 4,
                        colour, name);
    return text + model_line(rows.front()->setting, colour);
  }

  [[nodiscard]] std::string model_line(WorkerSetting setting, const char* colour) const {
    if (setting.claimants() == 0 || report_.fit.costs.sample_s + report_.fit.costs.step_s <= 0) return {};
    std::string points;
    for (setting.workers = 1; setting.workers <= most_workers_; ++setting.workers)
      points += fmt::format("{:.1f},{:.1f} ", x(setting.workers), y(predict(report_.fit.costs, setting).samples_per_s));
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-dasharray=\"4 3\" opacity=\"0.6\"/>\n", points,
        colour);
  }

  [[nodiscard]] std::string chosen_mark() const {
    const SweepRow& row = report_.chosen;
    return fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"8\" fill=\"none\" stroke=\"black\" stroke-width=\"1.5\"/>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">circle: recommended</text><text x=\"{:.1f}\" y=\"{:.1f}\">dashed: the "
        "model</text>\n",
        x(row.setting.workers), y(row.figures.samples_per_s), kWidth - kRight + 14, kHeight - kBottom - 18,
        kWidth - kRight + 14, kHeight - kBottom);
  }

  const SweepReport& report_;
  int most_workers_ = 1;
  double most_rate_ = 1;
  std::map<std::string, std::vector<const SweepRow*>> lines_;
};

}  // namespace

std::string SweepReport::svg() const { return Picture(*this).draw(); }

}  // namespace infeed
