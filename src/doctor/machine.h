#pragma once
/// What the files of a machine say; nothing is judged here.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "memory/limits.h"

namespace infeed {

struct MachineFacts {
  MachineLimits limits;
  int cpus_in_mask = 1;
  std::string cpu_level;      ///< instructions that the pixel kernels use
  std::string cpu_level_max;  ///< the best of this processor
  std::optional<std::uint64_t> memory_total, memory_available, page_cache, swap_used;                   ///< bytes
  std::optional<std::uint64_t> shm_bytes, shm_free;                                                     ///< of /dev/shm
  std::optional<std::uint64_t> max_files, max_locked, max_address_space, max_file_size, max_processes;  ///< soft limits
  std::string huge_pages, shmem_huge_pages;  ///< the chosen words; empty: unknown
  std::optional<int> overcommit;
  std::string kernel;                                             ///< release
  double cpu_pressure = 0, memory_pressure = 0, io_pressure = 0;  ///< share of the last 10 s that some task stalled
  bool in_container = false;
  std::vector<std::string> gpus;  ///< device files
  std::string gpu_driver;         ///< version; empty: none
  std::string cuda_plugin;        ///< path; empty: none found
};

[[nodiscard]] MachineFacts look_at_machine(const std::string& root);

}  // namespace infeed
