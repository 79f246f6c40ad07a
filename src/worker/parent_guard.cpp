#include "worker/parent_guard.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace infeed {
namespace {

// Of this process; read by the signal's handler.
std::atomic<pid_t> guarded_parent{0};

// Hardly anybody else's: libraries that use real-time signals take low numbers.
int orphan_signal() noexcept { return SIGRTMAX - 1; }

void leave_if_orphaned(int) noexcept {
  const int saved = errno;
  if (!parent_alive()) ::_exit(kExitOrphaned);
  errno = saved;
}

void set_disposition(int number, void (*handler)(int)) noexcept {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

// What was ignored (nohup) stays so.
void drop_handler(int number) noexcept {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  if (action.sa_handler != SIG_IGN) set_disposition(number, SIG_DFL);
}

}  // namespace

void guard_against_orphanage(pid_t parent) noexcept {
  guarded_parent.store(parent, std::memory_order_relaxed);
  set_disposition(SIGINT, SIG_IGN);
  set_disposition(SIGTERM, SIG_DFL);
  set_disposition(SIGCHLD, SIG_DFL);
  drop_handler(SIGHUP);
  drop_handler(SIGQUIT);
  set_disposition(orphan_signal(), leave_if_orphaned);
  ::prctl(PR_SET_PDEATHSIG, orphan_signal());
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  leave_if_orphaned(0);  // it died before the signal was set
}

bool parent_alive() noexcept { return ::getppid() == guarded_parent.load(std::memory_order_relaxed); }

SignalsBlocked::SignalsBlocked() noexcept {
  sigset_t all;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &saved_);
}

SignalsBlocked::~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }

}  // namespace infeed
