#pragma once
/// The table: on the terminal and as JSON.

#include <optional>
#include <string>
#include <vector>

#include "machine.h"
#include "rounds.h"

namespace bench {

/// Which way is good.
enum class Better { kHigher, kLower };

/// One line. `value` is the median of `rounds`.
struct Line {
  std::string id;    ///< of the question: "E1"
  std::string what;  ///< in words, with what it is compared
  std::string unit;
  Series rounds;
  Better better = Better::kHigher;
  std::optional<double> must, aim;  ///< empty: shown for itself
  double foreign = 0;               ///< share of the cores that others took meanwhile
};

class Report {
 public:
  /// Above this the line is marked: it was measured on a loaded machine.
  static constexpr double kLoaded = 0.08;

  void add(Line line) { lines_.push_back(std::move(line)); }
  [[nodiscard]] std::size_t size() const noexcept { return lines_.size(); }
  /// Others took `share` of the cores while the lines from `first` on were measured.
  void mark_foreign(std::size_t first, double share);

  /// The lines from `first` on; with `heading` the names of the columns before them.
  void print(std::size_t first, bool heading) const;
  /// {"machine": {...}, "rows": [{id, what, value, unit, must, aim, better, rounds, foreign}]}.
  void write_json(const std::string& path, const Machine& machine) const;

 private:
  std::vector<Line> lines_;
};

}  // namespace bench
