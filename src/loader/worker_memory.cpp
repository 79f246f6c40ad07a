#include "loader/worker_memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "infeed/base/error.h"
#include "loader/recorder.h"
#include "memory/limits.h"

namespace infeed {
namespace {

constexpr std::uint64_t kMega = 1'000'000;

}  // namespace

void check_memory_budget(std::uint64_t budget) {
  if (const std::uint64_t taken = budget > 0 ? read_pss({getpid()}) : 0; taken > budget)
    throw ConfigError(
        fmt::format("memory_budget is {} MB, this process has {} MB already.", budget / kMega, taken / kMega));
}

AutoWorkers::Memory memory_beside(const std::vector<std::int64_t>& workers, std::uint64_t budget) {
  const auto own = static_cast<std::int64_t>(getpid());
  AutoWorkers::Memory memory;
  std::uint64_t all = budget > 0 ? read_pss({own}) : 0;
  for (const std::int64_t pid : workers) {
    if (pid == own) continue;
    const std::uint64_t taken = read_pss({pid});
    all += taken;
    memory.worker = std::max(memory.worker, taken);
  }
  if (budget > 0)
    memory.left = static_cast<std::int64_t>(budget) - static_cast<std::int64_t>(all);
  else if (const auto left = read_memory_limit().memory_left)
    memory.left = static_cast<std::int64_t>(*left);
  return memory;
}

}  // namespace infeed
