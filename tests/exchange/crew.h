#pragma once
// Forked workers of an exchange; some die where a test says.

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "exchange/rig.h"
#include "ring/steps.h"
#include "support/processes.h"

namespace infeed::testing {

/// In a worker process: the step at whose n-th time it kills itself.
struct Fate {
  RingStep step = RingStep::kBeforeCas;
  int countdown = 0;  ///< 0: never
};
inline Fate fate_of_process;

inline void meet_fate(RingStep step) {
  if (step == fate_of_process.step && fate_of_process.countdown > 0 && --fate_of_process.countdown == 0) raise(SIGKILL);
}

/// Runs `action` in a forked child; the exit code is what it returns.
inline pid_t start_child(const std::function<int()>& action) {
  const pid_t pid = fork();
  if (pid == 0) _exit(action());
  return pid;
}

inline int exit_code(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

class Crew {
 public:
  Crew(Exchange& exchange, int num_workers, const Fate& fate = {}) : exchange_(exchange) {
    for (int worker = 0; worker < num_workers; ++worker) {
      pids_.push_back(0), pidfds_.push_back(-1);
      start(worker, fate);
    }
  }
  ~Crew() { stop(); }

  void stop() {
    if (pids_.empty()) return;
    exchange_.stop();
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    for (const int fd : pidfds_) close(fd);
    pids_.clear();
  }
  void kill(int worker) { ::kill(pids_[static_cast<std::size_t>(worker)], SIGKILL); }

  /// The message of `number`; the dead are buried and replaced meanwhile, with `fate`.
  std::string receive(std::uint64_t number, const Fate& fate = {}) {
    for (;;) {
      const ExchangeEvent event = exchange_.wait(std::span(&number, 1), pidfds_, -1);
      if (event.kind == ExchangeEvent::Kind::kReady) return text_of(exchange_.take(number));
      if (event.kind == ExchangeEvent::Kind::kDeath) replace(static_cast<int>(event.index), fate);
    }
  }
  [[nodiscard]] int deaths() const { return deaths_; }

 private:
  void start(int worker, const Fate& fate) {
    const auto w = static_cast<std::size_t>(worker);
    const WorkerFork ours;
    pids_[w] = start_child([&] {
      fate_of_process = fate;
      ring_step_hook = meet_fate;
      answer_until_stopped(handle_, worker);
      return 0;
    });
    pidfds_[w] = static_cast<int>(syscall(SYS_pidfd_open, pids_[w], 0U));
  }
  void replace(int worker, const Fate& fate) {
    ++deaths_;
    const auto w = static_cast<std::size_t>(worker);
    close(pidfds_[w]);
    waitpid(pids_[w], nullptr, 0);
    exchange_.bury(worker);
    start(worker, fate);
  }

  Exchange& exchange_;
  ExchangeHandle handle_ = exchange_.handle();
  std::vector<pid_t> pids_;
  std::vector<int> pidfds_;
  int deaths_ = 0;
};

}  // namespace infeed::testing
