#pragma once
/// Crop, resize, flip, normalise and layout in one pass, into the row's final place.

#include <memory>

#include "base/cpu.h"
#include "decode/decoder.h"
#include "decode/plane_window.h"
#include "infeed/base/array_view.h"
#include "transform/plan.h"

namespace infeed {

/// One thread's kernels and scratch. One owner, one thread.
///
/// Determinism: bytes depend on chain, plan and pixels only: equal on every CpuLevel, bit for bit.
/// Accuracy: float results are at most 0.06 of a level (1/255) from exact arithmetic; uint8 at most 1 level from
/// Pillow.
class FusedKernel {
 public:
  explicit FusedKernel(CpuLevel level = cpu_level());
  ~FusedKernel();
  FusedKernel(const FusedKernel&) = delete;
  FusedKernel& operator=(const FusedKernel&) = delete;

  /// `out`: C-contiguous, chain.dtype(), [3, out_height, out_width] or [out_height, out_width, 3]; any alignment of its
  /// dtype. Every element is written, nothing beyond; large results by streaming stores, fenced before the return.
  /// Throws ConfigError where `out` or `pixels` are not what plan and chain need.
  void run(const Compose& chain, const FusedPlan& plan, const PixelWindow& pixels, const ArrayView& out);

  /// The same from planes: each is resized by itself, chroma straight from its fewer samples, and colour is made of the
  /// results. What is held beyond the plan's window changes no bit. Gray equals the pixels' result bit for bit; of
  /// colours docs/transform.md states the error.
  void run(const Compose& chain, const FusedPlan& plan, const PlaneWindow& planes, const ArrayView& out);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace infeed
