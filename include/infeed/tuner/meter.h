#pragma once
/// What processes take while something is measured.

#include <cstdint>
#include <memory>
#include <vector>

#include "infeed/base/export.h"

namespace infeed {

/// Threads: one.
class INFEED_API Meter {
 public:
  /// Begins. `pids`: the processes that are ours.
  explicit Meter(std::vector<std::int64_t> pids);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;
  ~Meter();

  /// What other programs took of the machine's processors since then, 0 to 1; 0 where the kernel does not tell.
  [[nodiscard]] double others_share() const;
  /// Bytes that ours have now, shared pages once (PSS).
  [[nodiscard]] double memory_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace infeed
