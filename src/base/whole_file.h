#pragma once
/// Small files for people and scripts: traces, reports. `what` begins the messages.

#include <string>
#include <string_view>

#include "infeed/base/export.h"

namespace infeed {

/// Whole or not at all: who reads the file meets no half of it. Links are followed. What is no regular file, as a pipe
/// or a device, is written to and never replaced. Throws DataError.
INFEED_API void write_whole_file(const std::string& path, std::string_view bytes, std::string_view what);

/// Throws DataError where it can be seen now that write_whole_file() would fail.
INFEED_API void check_whole_file(const std::string& path, std::string_view what);

}  // namespace infeed
