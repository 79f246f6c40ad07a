#include "infeed/base/version.h"

namespace infeed {

const char* version() noexcept { return INFEED_VERSION; }

}  // namespace infeed
