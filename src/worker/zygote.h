#pragma once
/// A process that only forks workers: restarts and additions do not fork the consumer, whose threads may hold locks by
/// then, or whose memory may have grown.
///
///   consumer ──socket──> zygote ──fork──> worker     the worker's pidfd comes back over the socket
///
/// The zygote has one thread, and was forked before infeed started any in the consumer. It ends when its socket is
/// closed or the consumer dies; its workers, guarded by it (parent_guard.h), end with it.

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "worker/channel.h"
#include "worker/process.h"

namespace infeed {

/// Runs in a new worker process, already guarded; returns the exit code. Must not throw.
using WorkerMain = std::function<int(int worker_id, int num_workers)>;

/// Forks this process. The child closes `not_needed`, runs `body` and exits without unwinding, exit handlers or
/// flushes. None, and errno in `error`, where there is no room for it.
[[nodiscard]] Process fork_process(const std::vector<int>& not_needed, const std::function<int()>& body, int& error);

/// The consumer's end. Threads: one.
class Zygote {
 public:
  /// `not_needed`: descriptors of this process that the zygote and its workers close. Throws MemoryError.
  /// `settle` runs first in the zygote: its workers inherit what it did. No answer within `answer_ms`: it is given up.
  Zygote(WorkerMain worker_main, const std::function<void()>& settle, const std::vector<int>& not_needed,
         int answer_ms);
  /// Closes the socket and collects the process; kills it if it does not leave, or was given up.
  ~Zygote();
  Zygote(const Zygote&) = delete;
  Zygote& operator=(const Zygote&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return process_.pid(); }
  /// A worker forked by it. Throws MemoryError where there is no room for one; nullopt where the zygote does not answer
  /// (it was killed or stopped from outside).
  [[nodiscard]] std::optional<Process> launch(int worker_id, int num_workers);
  /// Collects a dead worker of its.
  [[nodiscard]] std::optional<ProcessExit> status(pid_t pid);
  /// In a child of the user's fork: closes the socket's copy.
  void abandon() noexcept;

 private:
  [[nodiscard]] bool ask(const ZygoteCommand& command, ZygoteReply& reply, Descriptor& passed);

  Channel channel_;
  Process process_;
  int answer_ms_;
  bool given_up_ = false;
};

}  // namespace infeed
