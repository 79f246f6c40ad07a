#pragma once
/// The smallest value of a function of a few numbers, without derivatives (Nelder and Mead).

#include <functional>
#include <vector>

namespace infeed {

struct Minimum {
  std::vector<double> at;
  double value = 0;
};

/// From `start`, with first steps of `step` in each direction, until the values at all corners agree to 1e-12 or
/// `most_calls` are spent. `f` may give infinity.
[[nodiscard]] Minimum minimise(const std::function<double(const std::vector<double>&)>& f,
                               const std::vector<double>& start, double step, int most_calls);

}  // namespace infeed
