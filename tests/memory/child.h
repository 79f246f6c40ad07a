#pragma once
/// Runs a body in a forked child, for tests that lower the process's limits.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>

namespace infeed {

inline constexpr int kChildPassed = 0;

/// Exit code of the child, 128 + signal if one killed it. The body returns true if all was as expected; exceptions
/// fail.
inline int run_in_child(const std::function<bool()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    try {
      _exit(body() ? kChildPassed : 1);
    } catch (const std::exception&) {
      _exit(2);
    }
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Lowers a soft limit while it lives.
class LoweredLimit {
 public:
  LoweredLimit(__rlimit_resource resource, rlim_t value) : resource_(resource) {
    getrlimit(resource, &before_);
    const rlimit lowered{value, before_.rlim_max};
    setrlimit(resource, &lowered);
  }
  ~LoweredLimit() { setrlimit(resource_, &before_); }
  LoweredLimit(const LoweredLimit&) = delete;
  LoweredLimit& operator=(const LoweredLimit&) = delete;

 private:
  __rlimit_resource resource_;
  rlimit before_{};
};

/// True if `body` throws an E whose message holds every one of `words`.
template <typename E>
bool throws_naming(const std::function<void()>& body, std::initializer_list<const char*> words) {
  try {
    body();
  } catch (const E& error) {
    const std::string text = error.what();
    for (const char* word : words) {
      if (text.find(word) == std::string::npos) return false;
    }
    return true;
  }
  return false;
}

}  // namespace infeed
