#pragma once
/// What a row costs a worker of late. A mean over all rows would remember page faults and cold files for long.

#include <algorithm>
#include <cstdint>

#include "ring/ring.h"

namespace infeed {

class Pace {
 public:
  /// `now`: rows and busy_ns, summed over the same claimants at each call; a smaller sum starts anew.
  void look(const ClaimantStats& now) noexcept {
    if (now.rows < seen_.rows || now.busy_ns < seen_.busy_ns) seen_ = now;
    const std::uint64_t rows = now.rows - seen_.rows;
    if (rows < kRowsToJudge) return;
    const std::uint64_t recent = std::max<std::uint64_t>(1, (now.busy_ns - seen_.busy_ns) / rows);
    row_ns_ = row_ns_ == kUnknown ? recent : (3 * row_ns_ + recent) / 4;
    seen_ = now;
  }

  /// At least 1; very large until enough rows were seen.
  [[nodiscard]] std::uint64_t row_ns() const noexcept { return std::max<std::uint64_t>(row_ns_, 1); }

 private:
  static constexpr std::uint64_t kRowsToJudge = 64;
  static constexpr std::uint64_t kUnknown = UINT64_MAX / 8;

  ClaimantStats seen_{};
  std::uint64_t row_ns_ = kUnknown;
};

}  // namespace infeed
