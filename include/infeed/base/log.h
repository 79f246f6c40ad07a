#pragma once
/// Where infeed's own messages go. Default: warnings and worse to standard error.

#include <functional>
#include <string_view>

#include "infeed/base/export.h"

namespace infeed {

enum class LogLevel : int { kTrace, kDebug, kInfo, kWarning, kError, kOff };

/// Messages below `level` are dropped. The environment's INFEED_LOG (trace ... off) sets the first value.
/// Threads: any.
INFEED_API void set_log_level(LogLevel level);
[[nodiscard]] INFEED_API LogLevel log_level();

/// Receives each message of this process; an empty function restores standard error. Worker processes inherit a sink
/// only by fork; a spawned worker writes to standard error. Threads: called from any, one at a time.
INFEED_API void set_log_sink(std::function<void(LogLevel, std::string_view)> sink);

/// Sends one message; plugins may use it too.
INFEED_API void log(LogLevel level, std::string_view message);

}  // namespace infeed
