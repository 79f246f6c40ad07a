#pragma once
/// A list worked off by threads.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <thread>
#include <vector>

#include "memory/limits.h"
#include "tools/prepare.h"

namespace infeed {

/// Runs work(tools, i) for i in [0, count) until `stop`; each thread has a `Tools` of its own. `work` does not throw.
template <typename Tools, typename Work>
void work_off(std::size_t count, int threads, const std::atomic<bool>& stop, const PrepareProgress& progress,
              const Work& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::int64_t done = 0;
  const auto run = [&] {
    Tools tools;
    for (std::size_t i = next++; i < count && !stop; i = next++) {
      work(tools, i);
      const std::lock_guard lock(mutex);
      progress(++done, static_cast<std::int64_t>(count));
    }
  };
  const auto usable = static_cast<std::size_t>(std::max(1.0, read_usable_cpus()));
  const std::size_t wanted = threads > 0 ? static_cast<std::size_t>(threads) : usable;
  std::vector<std::jthread> others;
  while (others.size() + 1 < std::min(wanted, count)) others.emplace_back(run);
  run();
}

}  // namespace infeed
