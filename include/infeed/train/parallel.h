#pragma once
/// How many threads the companion's arithmetic uses.

#include "infeed/base/export.h"

namespace infeed {

/// Threads of operations called from this thread, oneDNN's included. Default: the usable cores. The worker processes
/// of a loader want cores too: num_workers + threads should not exceed them.
INFEED_API void set_num_threads(int num_threads);
[[nodiscard]] INFEED_API int num_threads() noexcept;

}  // namespace infeed
