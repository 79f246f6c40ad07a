#pragma once
/// One training job with every kind and number of workers: which setting suits this machine? Its data are the demo's,
/// its model has half the width, so that a step takes about as long as feeding it.

#include <cstdint>
#include <string>
#include <vector>

#include "infeed/tuner/sweep.h"

namespace demo {

struct SweepOptions {
  std::string data;  ///< folder with train/
  std::vector<int> workers = {1, 2, 4, 8};
  int repetitions = 3;     ///< of each setting, in turns
  double run_seconds = 1;  ///< measured; start and warm-up come before
  std::uint64_t seed = 0;
};

/// Prints its progress. Throws what the loader throws, and Stopped.
[[nodiscard]] infeed::SweepReport sweep(const SweepOptions& options);

}  // namespace demo
