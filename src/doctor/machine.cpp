#include "doctor/machine.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "base/cpu.h"
#include "memory/cgroup.h"

namespace infeed {
namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> kib(const std::string& file, const std::string& key) {
  const auto number = read_keyed_number(file, key);
  return number ? std::optional(static_cast<std::uint64_t>(*number) * 1024) : std::nullopt;
}

/// "always [madvise] never" -> "madvise".
std::string chosen_word(const std::string& file) {
  const std::string text = read_text(file).value_or("");
  const std::size_t begin = text.find('['), end = text.find(']');
  return begin == std::string::npos || end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
}

std::string first_line(const std::string& file) {
  const std::string text = read_text(file).value_or("");
  return text.substr(0, text.find('\n'));
}

/// The soft limit in a line as "Max open files            1024                 4096                 files".
std::optional<std::uint64_t> soft_limit(const std::string& limits, const std::string& name) {
  const std::size_t at = limits.find(name + " ");
  if (at == std::string::npos) return std::nullopt;
  std::istringstream words(limits.substr(at + name.size()));
  std::uint64_t number = 0;
  return words >> number ? std::optional(number) : std::nullopt;  // "unlimited" is no number
}

/// "size=65536k" among the options of a mount; also m, g, and plain bytes. A share of the memory is no number.
std::optional<std::uint64_t> size_option(const std::string& options) {
  const std::size_t at = ("," + options).find(",size=");
  if (at == std::string::npos) return std::nullopt;
  std::uint64_t number = 0;
  const char* begin = options.c_str() + at + 5;
  const char* end = std::from_chars(begin, options.c_str() + options.size(), number).ptr;
  if (*end == '%') return std::nullopt;
  const int shift = *end == 'k' ? 10 : *end == 'm' ? 20 : *end == 'g' ? 30 : 0;
  return number << shift;
}

void look_at_shm(MachineFacts& facts, const std::string& root) {
  std::istringstream mounts(read_text(root + "/proc/mounts").value_or(""));
  for (std::string line; std::getline(mounts, line);) {
    std::string source, point, type, options;
    std::istringstream(line) >> source >> point >> type >> options;
    if (point == "/dev/shm") facts.shm_bytes = size_option(options);
  }
  struct statvfs info {};
  if (!root.empty() || statvfs("/dev/shm", &info) != 0) return;
  facts.shm_bytes = std::uint64_t{info.f_blocks} * info.f_frsize;
  facts.shm_free = std::uint64_t{info.f_bavail} * info.f_frsize;
}

/// "some avg10=1.25 avg60=..." -> 0.0125
double pressure(const std::string& file) {
  const std::string text = read_text(file).value_or("");
  const std::size_t at = text.find("avg10=");
  return at == std::string::npos ? 0 : std::strtod(text.c_str() + at + 6, nullptr) / 100;
}

int cpus_in_mask() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

/// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat ..." -> "535.104.05"
std::string driver_version(const std::string& root) {
  std::istringstream words(first_line(root + "/proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    const bool numbers = word.find_first_not_of("0123456789.") == std::string::npos;
    if (numbers && word.find('.') != std::string::npos) return word;
  }
  return {};
}

void look_at_gpus(MachineFacts& facts, const std::string& root) {
  for (int i = 0; i < 64; ++i) {
    const std::string file = fmt::format("/dev/nvidia{}", i);
    std::error_code ignored;
    if (fs::exists(root + file, ignored)) facts.gpus.push_back(file);
  }
  facts.gpu_driver = driver_version(root);
}

/// Where libinfeed.so lies, or this program.
fs::path own_folder() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&look_at_machine), &info) == 0 || info.dli_fname == nullptr) return ".";
  std::error_code ignored;
  return fs::weakly_canonical(info.dli_fname, ignored).parent_path();
}

std::string find_cuda_plugin(const std::string& root) {
  std::vector<fs::path> folders;
  const char* named = std::getenv("INFEED_PLUGIN_PATH");
  std::istringstream list(named != nullptr && root.empty() ? named : "");
  for (std::string folder; std::getline(list, folder, ':');) folders.emplace_back(folder);
  const fs::path here = root.empty() ? own_folder() : fs::path(root + "/usr/lib");
  folders.insert(folders.end(), {here, here / "../lib"});  // of the library; of the command
  std::error_code ignored;
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / "libinfeed_cuda.so", ignored)) return (folder / "libinfeed_cuda.so").lexically_normal();
  }
  return {};
}

}  // namespace

MachineFacts look_at_machine(const std::string& root) {
  MachineFacts facts;
  facts.limits = read_machine_limits(root);
  facts.cpus_in_mask = cpus_in_mask();
  facts.cpu_level = to_string(cpu_level());
  facts.cpu_level_max = to_string(best_cpu_level());
  const std::string meminfo = root + "/proc/meminfo";
  facts.memory_total = kib(meminfo, "MemTotal");
  facts.memory_available = kib(meminfo, "MemAvailable");
  facts.page_cache = kib(meminfo, "Cached");
  if (const auto swap = kib(meminfo, "SwapTotal"))
    facts.swap_used = *swap - std::min(*swap, kib(meminfo, "SwapFree").value_or(*swap));
  look_at_shm(facts, root);
  const std::string limits = read_text(root + "/proc/self/limits").value_or("");
  facts.max_files = soft_limit(limits, "Max open files");
  facts.max_locked = soft_limit(limits, "Max locked memory");
  facts.max_address_space = soft_limit(limits, "Max address space");
  facts.max_file_size = soft_limit(limits, "Max file size");
  facts.max_processes = soft_limit(limits, "Max processes");
  for (const CgroupFolder& group : Cgroups(root).of("pids")) {
    if (const auto most = read_number(group.path + "/pids.max"); most && *most >= 0)
      facts.max_processes = std::min(facts.max_processes.value_or(UINT64_MAX), static_cast<std::uint64_t>(*most));
  }
  facts.huge_pages = chosen_word(root + "/sys/kernel/mm/transparent_hugepage/enabled");
  facts.shmem_huge_pages = chosen_word(root + "/sys/kernel/mm/transparent_hugepage/shmem_enabled");
  if (const auto mode = read_number(root + "/proc/sys/vm/overcommit_memory"))
    facts.overcommit = static_cast<int>(*mode);
  facts.kernel = first_line(root + "/proc/sys/kernel/osrelease");
  facts.cpu_pressure = pressure(root + "/proc/pressure/cpu");
  facts.memory_pressure = pressure(root + "/proc/pressure/memory");
  facts.io_pressure = pressure(root + "/proc/pressure/io");
  std::error_code ignored;
  facts.in_container = fs::exists(root + "/.dockerenv", ignored) || fs::exists(root + "/run/.containerenv", ignored);
  look_at_gpus(facts, root);
  facts.cuda_plugin = find_cuda_plugin(root);
  return facts;
}

}  // namespace infeed
