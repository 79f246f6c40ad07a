#pragma once
/// One process: its descriptor, how it ended, its name and its CPU.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace infeed {

/// How a process ended. Unknown where somebody else collected its status: signal 0, code -1.
struct ProcessExit {
  int signal = 0;
  int code = 0;
};

/// Owns a pidfd, which becomes readable when the process has ended and is never another process's. Destroying it
/// neither kills nor collects.
class Process {
 public:
  Process() = default;  ///< none
  Process(pid_t pid, Descriptor pidfd) noexcept : pid_(pid), pidfd_(std::move(pidfd)) {}
  /// A child that was not collected yet. Where no descriptor is to be had the child is killed and collected, the
  /// result is none, and `error` the errno.
  [[nodiscard]] static Process adopt_child(pid_t pid, int& error) noexcept;

  [[nodiscard]] bool exists() const noexcept { return pidfd_.valid(); }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  [[nodiscard]] int fd() const noexcept { return pidfd_.fd(); }

  /// True once it is dead (it may still be a zombie). A stopped process is not.
  [[nodiscard]] bool ended() const noexcept { return wait(0); }
  /// Waits until it is dead, at most so long; -1: without limit. False: it still lives.
  bool wait(int timeout_ms) const noexcept;
  void signal(int number) const noexcept;
  /// Collects a dead child; nullopt if that is another's to do (its parent's, or a SIGCHLD handler's that was faster)
  /// and the kernel (before 6.15) does not tell.
  [[nodiscard]] std::optional<ProcessExit> collect() const noexcept;

 private:
  pid_t pid_ = 0;
  Descriptor pidfd_;
};

/// "infeed:w3"; names hold 15 bytes.
[[nodiscard]] std::string worker_name(int worker_id);
/// Names the calling thread, and with it the process where it is the main one.
void name_this_thread(const std::string& name) noexcept;
/// Binds the calling thread; threads it starts later inherit that. Throws ConfigError.
void bind_this_thread(int cpu);
/// Throws ConfigError naming a CPU that this process may not use.
void check_affinity(const std::vector<int>& cpus);

/// Throws MemoryError for what could not be started, with the limit that stands in the way.
[[noreturn]] void throw_cannot_start(const std::string& what, int error);

}  // namespace infeed
