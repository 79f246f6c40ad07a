#include "exchange/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstring>

#include "infeed/base/error.h"
#include "memory/memfd.h"
#include "worker/parent_guard.h"

namespace infeed {
namespace {

// Which process has its watcher: a forked child inherits the number but not the thread.
std::atomic<pid_t> g_watching{0};

// Intentional: no handler and no lock of ours, so that the end is at once whatever the process does.
void* watch(void* argument) {
  pollfd consumer{.fd = static_cast<int>(reinterpret_cast<std::intptr_t>(argument)), .events = POLLIN, .revents = 0};
  while (::poll(&consumer, 1, -1) < 0 && errno == EINTR) {
  }
  ::_exit(kExitOrphaned);
}

int start_thread(int pidfd, std::size_t stack_bytes) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, stack_bytes);
  pthread_t thread;
  const SignalsBlocked blocked;  // the thread inherits the mask
  const int error = pthread_create(&thread, &attributes, watch, reinterpret_cast<void*>(std::intptr_t{pidfd}));
  pthread_attr_destroy(&attributes);
  return error;
}

}  // namespace

void watch_consumer(pid_t consumer) {
  if (g_watching.exchange(::getpid()) == ::getpid()) return;
  const int pidfd = above_standard_streams(static_cast<int>(::syscall(SYS_pidfd_open, consumer, 0U)));
  if (pidfd < 0 && errno == ESRCH) ::_exit(kExitOrphaned);
  if (pidfd < 0) g_watching = 0;
  if (pidfd < 0)
    throw MemoryError(
        fmt::format("no descriptor that tells when process {} ends: {}.", consumer, std::strerror(errno)));
  // Thread-local variables of loaded libraries count against the stack: more, where they are many.
  int error = EINVAL;
  for (std::size_t kib = 64; error == EINVAL && kib <= 8192; kib *= 2)
    error = start_thread(pidfd, std::max(kib << 10, static_cast<std::size_t>(PTHREAD_STACK_MIN)));
  if (error == 0) return;
  ::close(pidfd);
  g_watching = 0;
  throw MemoryError(
      fmt::format("the thread that watches process {} cannot be started: {}.", consumer, std::strerror(error)));
}

}  // namespace infeed
