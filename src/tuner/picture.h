#pragma once
/// Measured settings as an SVG: rate and memory over the workers, the recommended one marked.

#include <optional>
#include <string>
#include <vector>

#include "infeed/tuner/model.h"

namespace infeed {

struct PicturePoint {
  WorkerSetting setting;
  double samples_per_s = 0;
  double spread = 0;        ///< of the rate, drawn as a bar
  double memory_bytes = 0;  ///< 0: not drawn
};

struct RatePicture {
  std::string title;
  std::vector<PicturePoint> points;
  std::optional<PipelineCosts> model = {};  ///< its rates are drawn dashed
  WorkerSetting chosen;
};

[[nodiscard]] std::string draw(const RatePicture& picture);

}  // namespace infeed
