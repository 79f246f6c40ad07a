#include "tuner/cores.h"

#include <fmt/format.h>

#include <optional>
#include <set>

#include "memory/cgroup.h"

namespace infeed {

int physical_cores(const std::string& root) {
  constexpr int kMostCpus = 4096;
  std::set<std::string> siblings;
  for (int cpu = 0; cpu < kMostCpus; ++cpu) {
    const std::string folder = fmt::format("{}/sys/devices/system/cpu/cpu{}/topology", root, cpu);
    std::optional<std::string> list = read_text(folder + "/thread_siblings_list");
    if (!list) break;
    siblings.insert(*list);
  }
  return static_cast<int>(siblings.size());
}

}  // namespace infeed
