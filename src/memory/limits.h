#pragma once
/// What this machine, container and process still allow, read before memory is used.

#include <cstdint>
#include <optional>
#include <string>

namespace infeed {

/// Memory, asked for by itself where it is asked for often: a third of the files of read_machine_limits().
struct MemoryLimit {
  std::optional<std::uint64_t> memory_left;  ///< bytes: the least of MemAvailable and every cgroup (v1, v2) up the path
  std::string memory_source;  ///< which one that was, e.g. "the cgroup's memory.max (/sys/fs/cgroup/a/memory.max)"
};

/// What a mapping may be long.
struct AddressLimits {
  std::optional<std::uint64_t> address_space_left;  ///< bytes: RLIMIT_AS minus what is mapped
  std::optional<std::uint64_t> file_size;           ///< bytes: RLIMIT_FSIZE
};

struct MachineLimits : MemoryLimit, AddressLimits {
  std::uint64_t descriptors_left = 0;  ///< RLIMIT_NOFILE minus open ones
  double usable_cpus = 1;              ///< sched_getaffinity, cut by the cgroup's CPU quota
};

/// The tightest quota of processor time up the path of groups.
struct CpuQuota {
  double cpus = 0;
  std::string folder;  ///< of the group that has it
  bool v2 = false;
};

/// `root` is put in front of /proc and /sys, for tests.
[[nodiscard]] MachineLimits read_machine_limits(const std::string& root = "");
[[nodiscard]] MemoryLimit read_memory_limit(const std::string& root = "");
[[nodiscard]] AddressLimits read_address_limits(const std::string& root = "");
/// MachineLimits::usable_cpus.
[[nodiscard]] double read_usable_cpus(const std::string& root = "");
/// nullopt where there is none below the affinity.
[[nodiscard]] std::optional<CpuQuota> read_cpu_quota(const std::string& root = "");
/// Seconds of processor time that all processes of its group took so far; nullopt where the kernel does not tell.
[[nodiscard]] std::optional<double> read_cpu_seconds(const CpuQuota& quota);

}  // namespace infeed
