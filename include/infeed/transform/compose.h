#pragma once
/// A list of image transforms as one: drawn before decoding, run in one pass into the row.

#include <optional>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/base/shape.h"
#include "infeed/base/state.h"
#include "infeed/transform/image.h"

namespace infeed {

/// Checked, immutable list of transforms. Throws ConfigError on an order or values that make no sense, naming them.
/// Geometry: each op applies to the result of those before it; one resampling pass serves any chain of one Resize or
/// RandomResizedCrop with crops and flips round it; a second resampling is a ConfigError.
/// Threads: a value, const use from any.
class INFEED_API Compose {
 public:
  Compose() : Compose(std::vector<ImageOp>{}) {}
  Compose(std::initializer_list<ImageOp> ops) : Compose(std::vector<ImageOp>(ops)) {}
  explicit Compose(std::vector<ImageOp> ops);

  [[nodiscard]] const std::vector<ImageOp>& ops() const noexcept { return ops_; }
  [[nodiscard]] DType dtype() const noexcept { return dtype_; }
  [[nodiscard]] ImageLayout layout() const noexcept { return layout_; }
  /// Shape of the result in its layout: [3, H, W] or [H, W, 3]; -1 where it depends on the picture.
  [[nodiscard]] Shape output_shape() const;

  /// To and from JSON-able state, for spawned workers.
  [[nodiscard]] State to_state() const;
  [[nodiscard]] static Compose from_state(const State& state);

 private:
  std::vector<ImageOp> ops_;
  DType dtype_ = DType::kUInt8;
  ImageLayout layout_ = ImageLayout::kCHW;
};

}  // namespace infeed
