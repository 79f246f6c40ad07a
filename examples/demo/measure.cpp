#include "measure.h"

#include <dirent.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "infeed/base/version.h"

namespace demo {
namespace {

constexpr double kSamplePause = 0.3;  // seconds: a sample walks the page tables of every process

// Field 4 of /proc/<pid>/stat; field 2 is a name in parentheses that may hold anything.
pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos || name_end + 4 > line.size()) return 0;  // it has just ended
  return static_cast<pid_t>(std::atoi(line.c_str() + name_end + 4));
}

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return children;
  while (const dirent* entry = readdir(proc)) {
    const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid > 0) children.emplace(parent_of(pid), pid);
  }
  closedir(proc);
  return children;
}

// This process first.
std::vector<pid_t> process_tree() {
  const auto children = children_by_parent();
  std::vector<pid_t> tree = {getpid()};
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const auto [first, last] = children.equal_range(tree[i]);
    for (auto child = first; child != last; ++child) tree.push_back(child->second);
  }
  return tree;
}

std::uint64_t pss_bytes(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  std::string word;
  std::uint64_t kib = 0;
  while (file >> word) {
    if (word == "Pss:" && file >> kib) return kib << 10;
  }
  return 0;
}

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return "unknown";
}

}  // namespace

std::uint64_t tree_pss_bytes() {
  std::uint64_t sum = 0;
  for (const pid_t pid : process_tree()) sum += pss_bytes(pid);
  return sum;
}

void PeakMemory::sample(bool now) {
  if (!now && clock_.seconds() < next_s_) return;
  peak_ = std::max(peak_, tree_pss_bytes());
  next_s_ = clock_.seconds() + kSamplePause;
}

Machine describe_machine() {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  sched_getaffinity(0, sizeof(usable), &usable);
  utsname system{};
  uname(&system);
  const double bytes = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  return {.cpus = std::max(1, CPU_COUNT(&usable)),
          .cpu = cpu_model(),
          .memory_gib = bytes / (1 << 30),
          .kernel = std::string(system.sysname) + " " + system.release,
          .compiler = DEMO_COMPILER,
          .version = infeed::version()};
}

}  // namespace demo
