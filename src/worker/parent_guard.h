#pragma once
/// A worker whose parent died leaves at once, also in the middle of a sample.

#include <sys/types.h>

#include <csignal>

namespace infeed {

/// Exit codes of worker processes; not in the range that shells and sanitizers use.
enum WorkerExit : int {
  kExitLeft = 90,         ///< was asked to leave, and left
  kExitOrphaned = 91,     ///< its parent died
  kExitStartFailed = 92,  ///< could not start; the text is in the ring
};

/// Makes this process one that infeed started: ignores SIGINT (Ctrl-C is the consumer's to handle), dies of SIGTERM,
/// has no handlers of the consumer's for SIGHUP, SIGQUIT and SIGCHLD, and exits with kExitOrphaned as soon as `parent`
/// is dead. All signals are unblocked after. Call first thing, in the process's main thread.
///
/// Intentional: no watching thread, which a fork of a threaded process must not start under TSan. The kernel's
/// parent-death signal comes when the *thread* that made us ends, so the handler looks whether the process is dead,
/// too; it comes again for the next thread that we were handed to.
void guard_against_orphanage(pid_t parent) noexcept;

/// False once the parent is dead. The second line, for waits: code of a dataset may block signals.
[[nodiscard]] bool parent_alive() noexcept;

/// Blocks all signals while it lives, so that a new child runs none of its parent's handlers. The child's copy is
/// ended by guard_against_orphanage().
class SignalsBlocked {
 public:
  SignalsBlocked() noexcept;
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t saved_;
};

}  // namespace infeed
