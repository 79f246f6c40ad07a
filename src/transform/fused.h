#pragma once
/// Crop, resize, flip, normalise and layout in one pass, into the row's final place.

#include <memory>

#include "decode/decoder.h"
#include "infeed/base/array_view.h"
#include "infeed/base/rng.h"
#include "infeed/transform/compose.h"

namespace infeed {

/// What one sample's chain came to, drawn before decoding.
struct FusedPlan {
  Window window;  ///< of the picture: what must be decoded (taps are clamped to it where torchvision crops first)
  double x = 0, y = 0, width = 0, height = 0;  ///< source rectangle that the output grid covers, pixels of the picture
  int out_width = 0, out_height = 0;           ///< of the result
  bool flip = false;
  // The implementer may add what it needs (padding of center_crop, offsets within a resized picture, ...).
};

/// Draws the random parts of `chain` for a picture of width x height.
[[nodiscard]] FusedPlan plan_sample(const Compose& chain, int width, int height, Philox rng);

/// One thread's kernels and scratch. One owner, one thread.
class FusedKernel {
 public:
  FusedKernel();
  ~FusedKernel();
  FusedKernel(const FusedKernel&) = delete;
  FusedKernel& operator=(const FusedKernel&) = delete;

  /// `out`: C-contiguous, chain.dtype(), [3, out_height, out_width] or [out_height, out_width, 3].
  void run(const Compose& chain, const FusedPlan& plan, const PixelWindow& pixels, const ArrayView& out);

 private:
  struct Scratch;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace infeed
