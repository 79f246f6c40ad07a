#pragma once
/// Which infeed this is.

#include "infeed/base/export.h"

namespace infeed {

/// "MAJOR.MINOR.PATCH" of the library that is loaded.
[[nodiscard]] INFEED_API const char* version() noexcept;

}  // namespace infeed
