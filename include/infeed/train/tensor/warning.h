#pragma once
/// Warnings: said once per call, to the log unless a binding takes them.

#include <functional>
#include <string>

#include "infeed/base/export.h"

namespace infeed {

/// Says `text` to the handler. Threads: any.
INFEED_API void warn(const std::string& text);

/// Who hears warnings from now on (Python's `warnings.warn`); an empty one means the log.
INFEED_API void set_warning_handler(std::function<void(const std::string&)> handler);

}  // namespace infeed
