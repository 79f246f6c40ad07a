#include "memory/limits.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <sstream>

#include "memory/cgroup.h"

namespace infeed {
namespace {

/// v1 writes "no limit" as the largest multiple of a page below 2^63.
constexpr std::int64_t kUnlimited = std::int64_t{1} << 60;

void lower(MemoryLimit& limits, std::int64_t left, const std::string& source) {
  const auto bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(left, 0));
  if (limits.memory_left && *limits.memory_left <= bytes) return;
  limits.memory_left = bytes;
  limits.memory_source = source;
}

/// What the group may still use; its clean file cache counts as free, since the kernel drops it first.
void read_memory(MemoryLimit& limits, const CgroupFolder& group, const std::string& root, const char* limit_file) {
  const std::string path = group.path + "/" + limit_file;
  const auto limit = read_number(path);
  if (!limit || *limit >= kUnlimited) return;
  const auto used = read_number(group.path + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes")).value_or(0);
  const auto cache =
      read_keyed_number(group.path + "/memory.stat", group.v2 ? "inactive_file" : "total_inactive_file").value_or(0);
  lower(limits, *limit - (used - std::min(cache, used)),
        fmt::format("the cgroup's {} ({})", limit_file, path.substr(root.size())));
}

MemoryLimit find_memory_limit(const std::string& root, const Cgroups& groups) {
  MemoryLimit limits;
  if (const auto kib = read_keyed_number(root + "/proc/meminfo", "MemAvailable")) {
    lower(limits, *kib * 1024, "the machine's free memory (MemAvailable in /proc/meminfo)");
  }
  for (const CgroupFolder& group : groups.of("memory")) {
    read_memory(limits, group, root, group.v2 ? "memory.max" : "memory.limit_in_bytes");
    if (group.v2) read_memory(limits, group, root, "memory.high");  // above it the kernel stalls the process
  }
  return limits;
}

/// CPUs that the group's quota comes to; nullopt without one.
std::optional<double> cpu_quota(const CgroupFolder& group) {
  double quota = -1, period = 0;
  if (group.v2) {
    std::istringstream(read_text(group.path + "/cpu.max").value_or("max")) >> quota >>
        period;  // "200000 100000" or "max 100000"
  } else {
    quota = static_cast<double>(read_number(group.path + "/cpu.cfs_quota_us").value_or(-1));
    period = static_cast<double>(read_number(group.path + "/cpu.cfs_period_us").value_or(0));
  }
  return quota > 0 && period > 0 ? std::optional(quota / period) : std::nullopt;
}

int cpus_in_affinity_mask() {
  for (int size = CPU_SETSIZE; size <= (1 << 20); size *= 2) {  // EINVAL: the kernel's mask is longer
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(CPU_ALLOC(static_cast<std::size_t>(size)),
                                                               [](cpu_set_t* s) { CPU_FREE(s); });
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(size));
    if (set != nullptr && sched_getaffinity(0, bytes, set.get()) == 0)
      return std::max(1, CPU_COUNT_S(bytes, set.get()));
  }
  return 1;
}

std::optional<CpuQuota> find_cpu_quota(const Cgroups& groups, double affinity) {
  CpuQuota tightest{.cpus = affinity};
  for (const CgroupFolder& group : groups.of("cpu")) {
    const double cpus = cpu_quota(group).value_or(affinity);
    if (cpus < tightest.cpus) tightest = {.cpus = cpus, .folder = group.path, .v2 = group.v2};
  }
  return tightest.folder.empty() ? std::nullopt : std::optional(tightest);
}

double find_usable_cpus(const Cgroups& groups) {
  const double affinity = cpus_in_affinity_mask();
  const auto quota = find_cpu_quota(groups, affinity);
  return quota ? quota->cpus : affinity;
}

std::uint64_t soft_limit(__rlimit_resource resource) {
  rlimit limit{};
  return getrlimit(resource, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

std::optional<std::uint64_t> read_address_space(const std::string& root) {
  const std::uint64_t limit = soft_limit(RLIMIT_AS);
  if (limit == RLIM_INFINITY) return std::nullopt;
  const auto pages = static_cast<std::uint64_t>(read_number(root + "/proc/self/statm").value_or(0));
  return limit - std::min(limit, pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)));
}

std::uint64_t count_open_descriptors(const std::string& root) {
  DIR* folder = opendir((root + "/proc/self/fd").c_str());
  if (folder == nullptr) return 0;
  std::uint64_t count = 0;
  while (const dirent* entry = readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  closedir(folder);
  return count - (count > 0 ? 1 : 0);  // the folder's own
}

}  // namespace

MemoryLimit read_memory_limit(const std::string& root) { return find_memory_limit(root, Cgroups(root)); }

double read_usable_cpus(const std::string& root) { return find_usable_cpus(Cgroups(root)); }

std::optional<CpuQuota> read_cpu_quota(const std::string& root) {
  return find_cpu_quota(Cgroups(root), cpus_in_affinity_mask());
}

std::optional<double> read_cpu_seconds(const CpuQuota& quota) {
  const auto ticks = quota.v2 ? read_keyed_number(quota.folder + "/cpu.stat", "usage_usec")
                              : read_number(quota.folder + "/cpuacct.usage");
  if (!ticks) return std::nullopt;
  return static_cast<double>(*ticks) * (quota.v2 ? 1e-6 : 1e-9);
}

AddressLimits read_address_limits(const std::string& root) {
  AddressLimits limits;
  limits.address_space_left = read_address_space(root);
  if (const auto bytes = soft_limit(RLIMIT_FSIZE); bytes != RLIM_INFINITY) limits.file_size = bytes;
  return limits;
}

MachineLimits read_machine_limits(const std::string& root) {
  const std::uint64_t descriptors = soft_limit(RLIMIT_NOFILE);
  const Cgroups groups(root);
  MachineLimits limits;
  static_cast<MemoryLimit&>(limits) = find_memory_limit(root, groups);
  static_cast<AddressLimits&>(limits) = read_address_limits(root);
  limits.descriptors_left = descriptors - std::min(descriptors, count_open_descriptors(root));
  limits.usable_cpus = find_usable_cpus(groups);
  return limits;
}

}  // namespace infeed
