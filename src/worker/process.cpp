#include "worker/process.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "infeed/base/error.h"

namespace infeed {
namespace {

// struct pidfd_info of linux/pidfd.h, first version, which kernel headers before 6.13 lack.
struct PidfdInfo {
  std::uint64_t mask;
  std::uint64_t cgroup_id;
  std::uint32_t pid, tgid, ppid;
  std::uint32_t ids[8];
  std::int32_t exit_code;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1 << 3;

ProcessExit from_wait_status(int status) noexcept {
  return WIFSIGNALED(status) ? ProcessExit{WTERMSIG(status), 0} : ProcessExit{0, WEXITSTATUS(status)};
}

// The kernel keeps the status of a process that was collected for as long as a pidfd refers to it.
std::optional<ProcessExit> kept_status(int pidfd) noexcept {
  PidfdInfo info{};
  info.mask = kInfoExit;
  if (::ioctl(pidfd, _IOWR(0xFF, 11, PidfdInfo), &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return from_wait_status(info.exit_code);
}

int remaining_ms(std::chrono::steady_clock::time_point deadline) noexcept {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

std::string limit_text(int error) {
  rlimit limit{};
  if (error == EMFILE && ::getrlimit(RLIMIT_NOFILE, &limit) == 0)
    return fmt::format("the limit of open descriptors (RLIMIT_NOFILE) is {}; raise it (ulimit -n)", limit.rlim_cur);
  if (error == ENFILE) return "the machine's limit of open files (fs.file-max) is reached; raise it";
  if (error == EAGAIN && ::getrlimit(RLIMIT_NPROC, &limit) == 0)
    return fmt::format("the limit of processes (RLIMIT_NPROC {}, or the container's pids.max) is reached; raise it",
                       limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur));
  if (error == ENOMEM) return "there is not enough memory for it; free some";
  return "the kernel refused it; free resources";
}

}  // namespace

Process Process::adopt_child(pid_t pid, int& error) noexcept {
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (pidfd.valid()) return {pid, std::move(pidfd)};
  error = errno;
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {};
}

bool Process::wait(int timeout_ms) const noexcept {
  if (!exists()) return true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  for (;;) {
    pollfd entry{.fd = fd(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, timeout_ms < 0 ? -1 : remaining_ms(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return false;
  }
}

void Process::signal(int number) const noexcept {
  if (exists()) ::syscall(SYS_pidfd_send_signal, fd(), number, nullptr, 0);
}

std::optional<ProcessExit> Process::collect() const noexcept {
  siginfo_t info{};
  int result = 0;
  do {
    result = ::waitid(P_PIDFD, static_cast<id_t>(fd()), &info, WEXITED);
  } while (result != 0 && errno == EINTR);
  if (result != 0) return kept_status(fd());
  if (info.si_code == CLD_EXITED) return ProcessExit{0, info.si_status};
  return ProcessExit{info.si_status, 0};
}

std::string worker_name(int worker_id) { return fmt::format("infeed:w{}", worker_id); }

void name_this_thread(const std::string& name) noexcept { ::prctl(PR_SET_NAME, name.c_str()); }

void bind_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    throw ConfigError(
        fmt::format("a worker cannot be bound to CPU {} ({}). Name CPUs of this machine and container "
                    "in cpu_affinity.",
                    cpu, std::strerror(errno)));
}

void check_affinity(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpus.empty() || ::sched_getaffinity(0, sizeof set, &set) != 0) return;
  std::vector<int> usable;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) usable.push_back(cpu);
  }
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(static_cast<std::size_t>(cpu), &set))
      throw ConfigError(fmt::format("cpu_affinity names CPU {}, but this process may use {}. Name only those.", cpu,
                                    fmt::join(usable, ", ")));
  }
}

void throw_cannot_start(const std::string& what, int error) {
  throw MemoryError(fmt::format("{}: {} (errno {}): {}, or lower num_workers.", what, std::strerror(error), error,
                                limit_text(error)));
}

}  // namespace infeed
