#pragma once
/// Two sweeps that others published, to hold the model to: it was not made from them.

#include <vector>

#include "infeed/tuner/fit.h"

namespace infeed {

/// A picture classifier on a large card, 0 to 16 workers: rise, flat, fall.
[[nodiscard]] inline std::vector<MeasuredRow> published_classifier() {
  const auto workers = [](int count) { return WorkerSetting{.kind = WorkerKind::kFork, .workers = count}; };
  return {{{.kind = WorkerKind::kInline}, 1200, 0, 0.27},
          {workers(4), 3800},
          {workers(8), 3900, 0, 0.85},
          {workers(16), 3600}};
}

/// An epoch of 100,000 pictures, 0 to 8 workers, with the memory of all processes.
[[nodiscard]] inline std::vector<MeasuredRow> published_pictures() {
  const auto workers = [](int count) { return WorkerSetting{.kind = WorkerKind::kFork, .workers = count}; };
  return {{{.kind = WorkerKind::kInline}, 100e3 / 214, 8.2e9, 0.65},
          {workers(2), 100e3 / 178, 14.7e9, 0.82},
          {workers(4), 100e3 / 165, 22.3e9, 0.89},
          {workers(8), 100e3 / 168, 38.1e9, 0.87}};
}

}  // namespace infeed
