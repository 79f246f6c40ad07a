#pragma once
// What a process leaves behind, read from /proc.

#include <dirent.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace infeed::testing {

inline std::vector<std::string> list_directory(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = opendir(path.c_str());
  if (!directory) return names;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  closedir(directory);
  return names;
}

inline std::size_t open_descriptors() { return list_directory("/proc/self/fd").size(); }

/// Children of this process, zombies included.
inline std::vector<pid_t> children(pid_t parent = getpid()) {
  std::vector<pid_t> found;
  for (const std::string& name : list_directory("/proc")) {
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stat("/proc/" + name + "/stat");
    std::string text((std::istreambuf_iterator<char>(stat)), {});
    const std::size_t close = text.rfind(')');
    if (close == std::string::npos) continue;
    if (std::stol(text.substr(close + 4)) == parent) found.push_back(static_cast<pid_t>(std::stol(name)));
  }
  return found;
}

inline bool exists(pid_t pid) { return access(("/proc/" + std::to_string(pid)).c_str(), F_OK) == 0; }

/// Polls until `condition` holds; false after ten seconds.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 10'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

}  // namespace infeed::testing
