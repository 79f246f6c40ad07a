#pragma once
/// Finding the forward call behind a failing or NaN-making backward.

#include <functional>
#include <string>

#include "infeed/base/export.h"

namespace infeed {

/// While on, every node remembers where its operation was called (slow), and backward() names that place when the node
/// fails or, with `check_nan`, returns NaN. Threads: one switch for all.
INFEED_API void set_detect_anomaly(bool enabled, bool check_nan = true) noexcept;
[[nodiscard]] INFEED_API bool is_anomaly_enabled() noexcept;
[[nodiscard]] INFEED_API bool is_anomaly_check_nan_enabled() noexcept;

/// Who describes the caller (Python's stack); without one it is a note that there is none.
INFEED_API void set_trace_source(std::function<std::string()> source);
[[nodiscard]] INFEED_API std::string forward_trace();

/// Anomaly mode until it is destroyed.
class INFEED_API AnomalyGuard {
 public:
  explicit AnomalyGuard(bool check_nan = true) noexcept
      : enabled_(is_anomaly_enabled()), check_nan_(is_anomaly_check_nan_enabled()) {
    set_detect_anomaly(true, check_nan);
  }
  ~AnomalyGuard() { set_detect_anomaly(enabled_, check_nan_); }
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

 private:
  bool enabled_, check_nan_;
};

}  // namespace infeed
