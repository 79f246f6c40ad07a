#pragma once
/// Whether memory has room for one more worker process.

#include <cstdint>
#include <vector>

#include "loader/auto_workers.h"

namespace infeed {

/// Throws ConfigError where this process alone has more than `budget` bytes. 0: there is no budget.
void check_memory_budget(std::uint64_t budget);

/// What is left of `budget` (0: of the machine's memory) beside this process and those of `workers`. The largest worker
/// tells what the next may grow to. This process's own pid among them counts once. Reads /proc: milliseconds.
[[nodiscard]] AutoWorkers::Memory memory_beside(const std::vector<std::int64_t>& workers, std::uint64_t budget);

}  // namespace infeed
