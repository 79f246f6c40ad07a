#pragma once
/// The demo's figures as a file.

#include <string>

#include "measure.h"
#include "sweep.h"
#include "train.h"

namespace demo {

struct Report {
  Machine machine;
  TrainReport training;
  infeed::SweepReport sweep;  ///< may have no rows
};

/// Of the last epoch.
[[nodiscard]] double validation_accuracy(const TrainReport& training);

/// Makes the folders above `path`. Throws std::runtime_error where nothing can be written there: better known early.
void check_place_of_report(const std::string& path);
/// Writes JSON to `path`, and the sweep's picture beside it, each whole or not at all. Throws std::runtime_error.
void write_report(const Report& report, const std::string& path);
/// "build/demo.svg" for "build/demo.json".
[[nodiscard]] std::string picture_path(const std::string& path);

}  // namespace demo
