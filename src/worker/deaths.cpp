#include "worker/deaths.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "worker/parent_guard.h"

namespace infeed {
namespace {

constexpr int kDieMs = 5000;  // of SIGKILL: a process that the kernel holds (in a hung file system) may take longer

ProcessExit collect_exit(const Process& process, Launcher& launcher) {
  if (const auto exit = process.collect()) return *exit;
  return launcher.status(process.pid()).value_or(ProcessExit{.signal = 0, .code = -1});
}

}  // namespace

bool Roster::occupied(int worker_id) const noexcept { return pid(worker_id) != 0; }

pid_t Roster::pid(int worker_id) const noexcept {
  const auto seat = static_cast<std::size_t>(worker_id);
  return seat < seats_.size() && seats_[seat].process.exists() ? seats_[seat].process.pid() : 0;
}

std::vector<pid_t> Roster::pids() const {
  std::vector<pid_t> pids;
  for (const Seat& seat : seats_) {
    if (seat.process.exists()) pids.push_back(seat.process.pid());
  }
  return pids;
}

void Roster::start(int worker_id, Process process) {
  const auto seat = static_cast<std::size_t>(worker_id);
  if (seat >= seats_.size()) seats_.resize(seat + 1);
  seats_[seat] = Seat{.process = std::move(process)};
  list_fds();
}

void Roster::ask_to_leave(int worker_id) noexcept {
  if (occupied(worker_id)) seats_[static_cast<std::size_t>(worker_id)].stage = Stage::kLeaving;
}

void Roster::recall(int worker_id) noexcept { seats_[static_cast<std::size_t>(worker_id)].stage = Stage::kRecalled; }

std::vector<Death> Roster::collect(Launcher& launcher, std::vector<int>& again) {
  std::vector<Death> deaths;
  for (std::size_t id = 0; id < seats_.size(); ++id) {
    Seat& seat = seats_[id];
    if (!seat.process.exists() || !seat.process.ended()) continue;
    const ProcessExit exit = collect_exit(seat.process, launcher);
    const Seat gone = std::exchange(seat, Seat{});
    const bool left = exit.signal == 0 && exit.code == kExitLeft;
    if (left && gone.stage == Stage::kRecalled) again.push_back(static_cast<int>(id));
    if (left && gone.stage != Stage::kWorking) continue;
    deaths.push_back(
        {.worker_id = static_cast<int>(id), .pid = gone.process.pid(), .signal = exit.signal, .exit_code = exit.code});
  }
  list_fds();
  return deaths;
}

void Roster::kill(int worker_id, Launcher& launcher) {
  if (!occupied(worker_id)) return;
  Seat& seat = seats_[static_cast<std::size_t>(worker_id)];
  seat.process.signal(SIGKILL);
  seat.process.wait(-1);  // without limit: while it may write, its claims are not ours to give away
  (void)collect_exit(seat.process, launcher);
  seat = Seat{};
  list_fds();
}

bool Roster::stop_all(int timeout_ms) noexcept {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (const Seat& seat : seats_) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (!seat.process.wait(static_cast<int>(std::max<std::int64_t>(left, 0)))) seat.process.signal(SIGKILL);
  }
  bool all = true;
  for (Seat& seat : seats_) {
    if (!seat.process.exists()) continue;
    if (seat.process.wait(kDieMs))
      (void)seat.process.collect();  // those of a zygote are the zygote's to collect, when it ends
    else
      all = false;
    seat = Seat{};
  }
  fds_.clear();
  return all;
}

void Roster::forget() noexcept {
  seats_.clear();
  fds_.clear();
}

void Roster::list_fds() {
  fds_.clear();
  for (const Seat& seat : seats_) {
    if (seat.process.exists()) fds_.push_back(seat.process.fd());
  }
}

}  // namespace infeed
