#pragma once
/// Contestants in turn, A B C A B C ..., so that all meet the same machine.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace bench {

/// What one contestant did, a value a round.
using Series = std::vector<double>;

inline double median(Series values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

/// Measures once; gets the number of the round. Round 0 warms up and is not counted.
using Turn = std::function<double(std::uint64_t round)>;

/// `rounds` values of each contestant, in the order given.
inline std::vector<Series> interleave(int rounds, const std::vector<Turn>& contestants) {
  std::vector<Series> series(contestants.size());
  for (std::uint64_t round = 0; round <= static_cast<std::uint64_t>(rounds); ++round) {
    for (std::size_t i = 0; i < contestants.size(); ++i) {
      const double value = contestants[i](round);
      if (round > 0) series[i].push_back(value);
    }
  }
  return series;
}

/// Round by round, so that what slows a whole round cancels.
inline Series ratio(const Series& a, const Series& b) {
  Series result;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) result.push_back(a[i] / b[i]);
  return result;
}

inline Series scaled(Series values, double factor) {
  for (double& value : values) value *= factor;
  return values;
}

}  // namespace bench
