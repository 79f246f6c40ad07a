#pragma once
/// Whether operations record the graph.

#include "infeed/base/export.h"

namespace infeed {

/// True unless switched off on this thread.
[[nodiscard]] INFEED_API bool grad_enabled() noexcept;
INFEED_API void set_grad_enabled(bool enabled) noexcept;
/// True under an InferenceModeGuard: nothing is recorded, and new tensors can never be.
[[nodiscard]] INFEED_API bool is_inference_mode_enabled() noexcept;
INFEED_API void set_inference_mode(bool enabled) noexcept;

/// Switches recording on this thread until it is destroyed, then restores what was.
class INFEED_API GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) noexcept : previous_(grad_enabled()) { set_grad_enabled(enabled); }
  ~GradModeGuard() { set_grad_enabled(previous_); }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool previous_;
};

/// Evaluation, optimizer steps.
class INFEED_API NoGradGuard : public GradModeGuard {
 public:
  NoGradGuard() noexcept : GradModeGuard(false) {}
};

class INFEED_API EnableGradGuard : public GradModeGuard {
 public:
  EnableGradGuard() noexcept : GradModeGuard(true) {}
};

/// The cheapest evaluation: tensors made under it have no version and are refused by autograd later.
class INFEED_API InferenceModeGuard {
 public:
  explicit InferenceModeGuard(bool enabled = true) noexcept : grad_(!enabled), previous_(is_inference_mode_enabled()) {
    set_inference_mode(enabled);
  }
  ~InferenceModeGuard() { set_inference_mode(previous_); }
  InferenceModeGuard(const InferenceModeGuard&) = delete;
  InferenceModeGuard& operator=(const InferenceModeGuard&) = delete;

 private:
  GradModeGuard grad_;
  bool previous_;
};

}  // namespace infeed
