#include "worker/zygote.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "memory/fork_watch.h"
#include "worker/parent_guard.h"

namespace infeed {
namespace {

constexpr int kLeaveMs = 2000;

// The zygote's own process.
class Server {
 public:
  Server(Channel channel, WorkerMain worker_main, Descriptor consumer)
      : channel_(std::move(channel)), worker_main_(std::move(worker_main)), consumer_(std::move(consumer)) {}

  void serve();

 private:
  [[nodiscard]] bool wait_for_command() const noexcept;
  void start(const ZygoteCommand& command);
  void collect(const ZygoteCommand& command);

  Channel channel_;
  WorkerMain worker_main_;
  Descriptor consumer_;  // pidfd: others that we do not know of may hold the socket's other end open
};

void Server::serve() {
  ZygoteCommand command;
  while (wait_for_command() && channel_.receive(command)) {
    if (command.order == ZygoteOrder::kStart)
      start(command);
    else
      collect(command);
  }
  if (!parent_alive()) return;  // the workers see our end, and leave
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

bool Server::wait_for_command() const noexcept {
  pollfd entries[2] = {{.fd = channel_.fd(), .events = POLLIN, .revents = 0},
                       {.fd = consumer_.fd(), .events = POLLIN, .revents = 0}};
  while (::poll(entries, 2, -1) < 0) {
    if (errno != EINTR) return false;
  }
  return entries[1].revents == 0;
}

void Server::start(const ZygoteCommand& command) {
  ZygoteReply reply;
  const Process worker = fork_process(
      {channel_.fd(), consumer_.fd()}, [&] { return worker_main_(command.worker_id, command.num_workers); },
      reply.error);
  reply.pid = worker.pid();
  channel_.send(reply, worker.fd());
}

void Server::collect(const ZygoteCommand& command) {
  if (command.order == ZygoteOrder::kKill) ::kill(command.pid, SIGKILL);
  ZygoteReply reply{.pid = command.pid};
  int status = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(command.pid, &status, 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) reply.error = errno;
  if (got > 0 && WIFSIGNALED(status)) reply.signal = WTERMSIG(status);
  if (got > 0 && WIFEXITED(status)) reply.exit_code = WEXITSTATUS(status);
  channel_.send(reply);
}

int run_zygote(Channel channel, WorkerMain worker_main, pid_t consumer) noexcept {
  name_this_thread("infeed:zygote");
  Descriptor pidfd(static_cast<int>(::syscall(SYS_pidfd_open, consumer, 0)));
  if (!pidfd.valid()) return kExitStartFailed;
  Server(std::move(channel), std::move(worker_main), std::move(pidfd)).serve();
  return kExitLeft;
}

}  // namespace

Process fork_process(const std::vector<int>& not_needed, const std::function<int()>& body, int& error) {
  const pid_t parent = ::getpid();
  const OwnFork ours;
  const SignalsBlocked quiet;
  const pid_t pid = ::fork();
  if (pid == 0) {
    guard_against_orphanage(parent);
    for (const int fd : not_needed) ::close(fd);
    ::_exit(body());
  }
  if (pid > 0) return Process::adopt_child(pid, error);
  error = errno;
  return {};
}

Zygote::Zygote(WorkerMain worker_main, const std::function<void()>& settle, const std::vector<int>& not_needed,
               int answer_ms)
    : answer_ms_(answer_ms) {
  Channel theirs;
  Channel::open(channel_, theirs);
  std::vector<int> close = not_needed;
  close.push_back(channel_.fd());
  const pid_t consumer = ::getpid();
  int error = 0;
  process_ = fork_process(
      close,
      [&] {
        settle();
        return run_zygote(std::move(theirs), std::move(worker_main), consumer);
      },
      error);
  if (!process_.exists()) throw_cannot_start("no process to restart workers", error);
}

Zygote::~Zygote() {
  channel_.shut();
  if (!process_.exists()) return;
  if (given_up_ || !process_.wait(kLeaveMs)) process_.signal(SIGKILL);
  process_.wait(-1);
  (void)process_.collect();
}

// False: it is given up. A late answer must not be taken for that to the next question.
bool Zygote::ask(const ZygoteCommand& command, ZygoteReply& reply, Descriptor& passed) {
  if (!given_up_ && channel_.send(command) && channel_.receive(reply, passed, answer_ms_)) return true;
  given_up_ = true;
  channel_.shut();
  return false;
}

std::optional<Process> Zygote::launch(int worker_id, int num_workers) {
  ZygoteReply reply;
  Descriptor pidfd;
  if (!ask({.worker_id = worker_id, .num_workers = num_workers}, reply, pidfd)) return std::nullopt;
  if (reply.error != 0) throw_cannot_start(fmt::format("worker {} could not be forked", worker_id), reply.error);
  if (!pidfd.valid()) {
    (void)ask({.order = ZygoteOrder::kKill, .pid = reply.pid}, reply, pidfd);
    throw_cannot_start(fmt::format("no descriptor for worker {}", worker_id), EMFILE);
  }
  return Process(reply.pid, std::move(pidfd));
}

std::optional<ProcessExit> Zygote::status(pid_t pid) {
  ZygoteReply reply;
  Descriptor none;
  if (!ask({.order = ZygoteOrder::kStatus, .pid = pid}, reply, none) || reply.error != 0) return std::nullopt;
  return ProcessExit{reply.signal, reply.exit_code};
}

void Zygote::abandon() noexcept {
  channel_.close();
  process_ = Process();
}

}  // namespace infeed
