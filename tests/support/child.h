#pragma once
// Code that runs in a forked child, with limits of its own.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <initializer_list>
#include <string>

namespace infeed::testing {

/// 128 + signal if one killed it. An exception is printed and ends it with 2; a child that hangs, SIGALRM.
inline int exit_code_of_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(300);
    try {
      _exit(body());
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      _exit(2);
    }
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

inline bool holds_in_child(const std::function<bool()>& body) {
  return exit_code_of_child([&body] { return body() ? 0 : 1; }) == 0;
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

}  // namespace infeed::testing
