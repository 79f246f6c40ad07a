#pragma once
/// Of repetitions.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace infeed {

/// The middle one, or the mean of the two in the middle; 0 of none.
[[nodiscard]] inline double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// (largest - smallest) / median; 0 of none.
[[nodiscard]] inline double spread(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double middle = median(values);
  return middle > 0 ? (*most - *least) / middle : 0;
}

}  // namespace infeed
