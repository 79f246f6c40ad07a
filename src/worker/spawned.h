#pragma once
/// The inside of infeed-worker.

#include "infeed/base/export.h"
#include "infeed/dataset/registry.h"

namespace infeed {

/// Does what the arguments and the inherited descriptors say (boot.h), making the dataset by `registry`, and ends the
/// process. Returns, with a message and 2, only where it was not started by infeed.
INFEED_API int spawned_worker_main(int argc, char** argv, const Registry& registry);

}  // namespace infeed
