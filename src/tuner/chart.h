#pragma once
/// One panel of a picture: values over numbers of workers, with round ticks and a light grid. SVG, pixels from the top left.

#include <string>
#include <vector>

namespace infeed {

struct Frame {
  double left = 0, top = 0, width = 0, height = 0;
};

class Chart {
 public:
  /// `counts`: of workers, on the horizontal axis. `most`: the largest value to be drawn.
  Chart(Frame frame, std::vector<int> counts, double most);

  /// In proportion up to 8 workers, else logarithmic, so that doubled counts lie evenly.
  [[nodiscard]] double x(double workers) const;
  [[nodiscard]] double y(double value) const;
  /// Frame, grid, numbers and names of both axes. The counts stand below the lowest panel only.
  [[nodiscard]] std::string axes(const std::string& name, bool with_counts) const;

 private:
  Frame frame_;
  std::vector<int> counts_;
  double step_ = 1;  ///< between ticks: 1, 2 or 5 times a power of ten
  double top_ = 1;   ///< the value at the upper end
};

/// "12,500".
[[nodiscard]] std::string with_thousands(double value);

}  // namespace infeed
