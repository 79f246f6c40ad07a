#pragma once
/// Cores of this machine: two hyper-threads of one count once.

#include <string>

namespace infeed {

/// Those that the kernel lists; 0 where it does not tell. `root` is put in front of /sys, for tests.
[[nodiscard]] int physical_cores(const std::string& root = "");

}  // namespace infeed
