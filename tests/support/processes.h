#pragma once
// What a process leaves behind, read from /proc.

#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
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

/// State letter of a process, as ps has it: R, S, T, Z, ...; nullopt where there is none.
inline std::optional<char> state_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  const std::string text((std::istreambuf_iterator<char>(stat)), {});
  const std::size_t close = text.rfind(')');
  if (close == std::string::npos || close + 2 >= text.size()) return std::nullopt;
  return text[close + 2];
}

/// It runs no more; whoever inherits it may collect it when it likes.
inline bool has_ended(pid_t pid) {
  const char state = state_of(pid).value_or('X');
  return state == 'X' || state == 'Z';
}

/// Polls until `condition` holds; false after 30,000 looks, so half a minute of the test's own time or more.
template <typename Condition>
bool eventually(Condition condition) {
  for (int i = 0; i < 30'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

/// SIGKILL, and the end of the process: a signal that was sent may still take effect late. False if it never does.
inline bool kill_and_wait(pid_t pid) {
  kill(pid, SIGKILL);
  return eventually([pid] { return has_ended(pid); });
}

/// SIGSTOP, and the stop.
inline bool stop_and_wait(pid_t pid) {
  kill(pid, SIGSTOP);
  return eventually([pid] { return state_of(pid) == 'T'; });
}

}  // namespace infeed::testing
