#include "tuner/simplex.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace infeed {
namespace {

constexpr double kAgreed = 1e-12;

using Point = std::vector<double>;
using Function = std::function<double(const Point&)>;

/// a + by * (b - a)
Point along(const Point& a, const Point& b, double by) {
  Point point(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) point[i] = a[i] + by * (b[i] - a[i]);
  return point;
}

/// Corners, best first.
class Simplex {
 public:
  Simplex(const Function& f, const Point& start, double step) : f_(f) {
    corners_.push_back(look(start));
    for (std::size_t i = 0; i < start.size(); ++i) {
      Point corner = start;
      corner[i] += step;
      corners_.push_back(look(std::move(corner)));
    }
    sort();
  }

  void improve() {
    const Point centre = centre_of_the_better();
    const Minimum reflected = look(along(centre, corners_.back().at, -1));
    if (reflected.value < corners_.front().value) {
      Minimum further = look(along(centre, corners_.back().at, -2));
      corners_.back() = further.value < reflected.value ? std::move(further) : reflected;
    } else if (reflected.value < corners_[corners_.size() - 2].value) {
      corners_.back() = reflected;
    } else {
      contract(centre, reflected.value < corners_.back().value);
    }
    sort();
  }

  [[nodiscard]] const Minimum& best() const { return corners_.front(); }
  [[nodiscard]] bool agreed() const { return corners_.back().value - corners_.front().value <= kAgreed; }
  [[nodiscard]] int calls() const { return calls_; }

 private:
  Minimum look(Point at) {
    ++calls_;
    const double value = f_(at);
    return {std::move(at), value};
  }

  void contract(const Point& centre, bool outside) {
    Minimum inner = look(along(centre, corners_.back().at, outside ? -0.5 : 0.5));
    if (inner.value < corners_.back().value) {
      corners_.back() = std::move(inner);
      return;
    }
    for (std::size_t i = 1; i < corners_.size(); ++i) corners_[i] = look(along(corners_[0].at, corners_[i].at, 0.5));
  }

  [[nodiscard]] Point centre_of_the_better() const {
    Point centre(corners_.front().at.size(), 0);
    for (std::size_t i = 0; i + 1 < corners_.size(); ++i) {
      for (std::size_t d = 0; d < centre.size(); ++d)
        centre[d] += corners_[i].at[d] / static_cast<double>(corners_.size() - 1);
    }
    return centre;
  }

  void sort() {
    std::stable_sort(corners_.begin(), corners_.end(),
                     [](const Minimum& a, const Minimum& b) { return a.value < b.value; });
  }

  const Function& f_;
  std::vector<Minimum> corners_;
  int calls_ = 0;
};

}  // namespace

Minimum minimise(const Function& f, const Point& start, double step, int most_calls) {
  Simplex simplex(f, start, step);
  while (!simplex.agreed() && simplex.calls() < most_calls) simplex.improve();
  return simplex.best();
}

}  // namespace infeed
