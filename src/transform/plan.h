#pragma once
/// What one sample's chain of transforms comes to: geometry drawn before decoding, pulled back to the picture.

#include "decode/decoder.h"
#include "infeed/base/rng.h"
#include "infeed/transform/compose.h"

namespace infeed {

/// A run of grid points. Those outside [valid_begin, valid_end) are zero padding.
struct GridRange {
  int begin = 0, size = 0;
  int valid_begin = 0, valid_end = 0;
  friend bool operator==(const GridRange&, const GridRange&) = default;
};

/// One axis of a plan, before flipping:
///
///     picture    |.......[=== source.size ===].......|     what is resized; taps are clamped to it, as a crop's are
///     resized            [0 ... ( out ) ... resized]       of which `out` is kept
struct AxisPlan {
  GridRange source;  ///< pixels of the picture; begin < 0 where padding comes before the resize
  int resized = 0;   ///< points that `source` is resized to; equal to source.size where nothing is resampled
  GridRange out;     ///< points of the resized grid
  friend bool operator==(const AxisPlan&, const AxisPlan&) = default;
};

/// What one sample's chain came to.
struct FusedPlan {
  Window window;  ///< of the picture: what must be decoded, the filter's support included
  AxisPlan horizontal, vertical;
  int out_width = 0, out_height = 0;  ///< of the result
  bool flip = false;                  ///< left and right, after all else
};

/// Applies geometry to a picture, op by op, each to the result of those before. One owner, one thread.
class PlanBuilder {
 public:
  PlanBuilder(int width, int height);

  [[nodiscard]] int width() const noexcept { return horizontal_.out.size; }  ///< of the result so far
  [[nodiscard]] int height() const noexcept { return vertical_.out.size; }

  /// Keeps width x height from (x, y) on. What lies outside the picture becomes zero.
  void crop(int x, int y, int width, int height);
  void center_crop(const CenterCrop& op);
  /// Once only: what comes after selects from its result.
  void resize(int width, int height);
  /// Shorter side or exact, with torchvision's rounding.
  void resize(const Resize& op);
  void flip() noexcept { flip_ = !flip_; }

  [[nodiscard]] FusedPlan finish() const;

 private:
  int picture_width_, picture_height_;
  AxisPlan horizontal_, vertical_;
  bool flip_ = false;
};

/// Draws the random parts of `chain` for a picture of width x height.
///
/// Draws: in the order of the ops, RandomResizedCrop takes 22 uniforms (ten pairs of area and log ratio, then left and
/// top), RandomHorizontalFlip one, others none; so an op's draws do not depend on what the ones before came to.
/// Throws ConfigError on a picture without pixels or a result too large to address.
[[nodiscard]] FusedPlan plan_sample(const Compose& chain, int width, int height, Philox rng);

}  // namespace infeed
