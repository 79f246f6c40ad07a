#include "worker/spawn.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "infeed/base/error.h"
#include "worker/boot.h"
#include "worker/executable.h"

namespace infeed {
namespace {

Memfd write_boot(const std::string& json) {
  Memfd file = Memfd::create("infeed-boot", json.size());
  std::size_t written = 0;
  while (written < json.size()) {
    const ssize_t n = ::pwrite(file.fd(), json.data() + written, json.size() - written, static_cast<off_t>(written));
    if (n < 0 && errno != EINTR) throw_cannot_start("no memory for what spawned workers are told", errno);
    if (n > 0) written += static_cast<std::size_t>(n);
  }
  return file;
}

// Owns the file actions that put source i at kBootFd + i.
class Inheritance {
 public:
  explicit Inheritance(const std::vector<int>& sources) {
    ::posix_spawn_file_actions_init(&actions_);
    const int end = kBootFd + static_cast<int>(sources.size());
    for (int i = 0; i < static_cast<int>(sources.size()); ++i)
      ::posix_spawn_file_actions_adddup2(&actions_, out_of_the_way(sources[static_cast<std::size_t>(i)], end),
                                         kBootFd + i);
  }
  ~Inheritance() { ::posix_spawn_file_actions_destroy(&actions_); }
  Inheritance(const Inheritance&) = delete;
  Inheritance& operator=(const Inheritance&) = delete;

  [[nodiscard]] const posix_spawn_file_actions_t* get() const noexcept { return &actions_; }

 private:
  // A source among the targets would be overwritten before its turn: a copy above them stands in.
  int out_of_the_way(int fd, int end) {
    if (fd < kBootFd || fd >= end) return fd;
    copies_.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, end));
    const int error = errno == EINVAL ? EMFILE : errno;  // the limit lies below `end`
    if (!copies_.back().valid()) throw_cannot_start("no descriptors for a spawned worker", error);
    return copies_.back().fd();
  }

  posix_spawn_file_actions_t actions_{};
  std::vector<Descriptor> copies_;
};

// Ctrl-C waits until the worker ignores it.
class SpawnAttributes {
 public:
  SpawnAttributes() {
    ::posix_spawnattr_init(&attributes_);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGINT);
    ::posix_spawnattr_setsigmask(&attributes_, &blocked);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  [[nodiscard]] const posix_spawnattr_t* get() const noexcept { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

[[noreturn]] void throw_not_spawned(const std::string& executable, int worker_id, int error) {
  if (error == EMFILE || error == ENFILE || error == EAGAIN || error == ENOMEM || error == EBADF)
    throw_cannot_start(fmt::format("worker {} could not be spawned", worker_id), error);
  throw ConfigError(
      fmt::format("worker {} could not be spawned: \"{}\" does not start: {}. Set worker_executable or "
                  "INFEED_WORKER to infeed-worker of this build.",
                  worker_id, executable, std::strerror(error)));
}

}  // namespace

SpawnLauncher::SpawnLauncher(const PoolOptions& options, const Arena& arena, const WorkPlan& plan)
    : executable_(find_worker_executable(options.worker_executable)),
      inherited_{-1, arena.fd(), options.ready_eventfd},
      boot_(Memfd::adopt(-1)) {
  std::vector<int> dataset_fds;
  const Boot boot = make_boot(options, arena, plan, dataset_fds);
  boot_ = write_boot(boot.to_json());
  inherited_[0] = boot_.fd();
  inherited_.insert(inherited_.end(), dataset_fds.begin(), dataset_fds.end());
}

Process SpawnLauncher::launch(int worker_id, int num_workers, const std::vector<int>& /*pool_fds*/) {
  const Inheritance inheritance(inherited_);
  const SpawnAttributes attributes;
  std::array<std::string, 4> words{executable_, std::to_string(worker_id), std::to_string(num_workers),
                                   std::to_string(::getpid())};
  std::array<char*, 5> arguments{words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  pid_t pid = 0;
  int error = ::posix_spawn(&pid, executable_.c_str(), inheritance.get(), attributes.get(), arguments.data(), environ);
  if (error != 0) throw_not_spawned(executable_, worker_id, error);
  Process worker = Process::adopt_child(pid, error);
  if (!worker.exists())
    throw_cannot_start(fmt::format("no descriptor for worker {} of {}", worker_id, num_workers), error);
  return worker;
}

}  // namespace infeed
