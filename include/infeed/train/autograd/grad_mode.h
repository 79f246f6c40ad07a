#pragma once
/// Whether operations record the graph.

#include "infeed/base/export.h"

namespace infeed {

/// True unless a NoGradGuard lives on this thread.
[[nodiscard]] INFEED_API bool grad_enabled() noexcept;

/// Switches recording off on this thread until it is destroyed: evaluation, optimizer steps.
class INFEED_API NoGradGuard {
 public:
  NoGradGuard() noexcept;
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace infeed
