#pragma once
/// Where infeed-worker is.

#include <string>

namespace infeed {

/// `option` if it is set, else $INFEED_WORKER, else what lies beside the library: ../libexec/infeed, its own folder,
/// ../bin. Throws ConfigError that lists where it was looked for.
[[nodiscard]] std::string find_worker_executable(const std::string& option);

}  // namespace infeed
