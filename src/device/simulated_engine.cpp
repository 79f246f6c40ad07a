#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "device/simulated_core.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

// A sleep ends late by the kernel's wake-up time; the last stretch before a deadline is spun.
constexpr auto kSpin = std::chrono::microseconds(60);

constexpr std::array<const char*, 3> kThreadNames = {"infeed:dma0", "infeed:dma1", "infeed:comp0"};

// The user's signals go to the user's threads.
std::thread start_without_signals(std::function<void()> body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread;
  try {
    thread = std::thread(std::move(body));
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace

SimulatedCore::SimulatedCore(const SimulatedOptions& options)
    : options_(options), label_(to_string(DeviceId{DeviceType::kSimulated, options.index})), owner_pid_(::getpid()) {}

std::shared_ptr<SimulatedCore> SimulatedCore::create(const SimulatedOptions& options) {
  return {new SimulatedCore(options), [](SimulatedCore* core) {
            if (core->owned_here()) delete core;
          }};
}

SimulatedCore::Lock SimulatedCore::lock_any() const {
  if (!owned_here()) {
    throw DeviceError(
        fmt::format("{} belongs to process {}; a forked process must make its own device", label_, owner_pid_));
  }
  Lock lock(mutex_);
  if (closed_) throw DeviceError(label_ + " was destroyed; keep the device longer than what it made");
  return lock;
}

SimulatedCore::Lock SimulatedCore::lock_alive() const {
  Lock lock = lock_any();
  if (!lost_.empty()) throw DeviceError(lost_);
  return lock;
}

void SimulatedCore::close() noexcept {
  if (!owned_here()) return;
  std::vector<SimOp> dropped;  // what they own is destroyed without the lock
  {
    const Lock lock(mutex_);
    closed_ = true;
    drop_all(label_ + " was destroyed with work queued", dropped);
    for (Engine& engine : engines_) engine.wake.notify_all();
  }
  for (Engine& engine : engines_) {
    if (!engine.thread.joinable()) continue;
    // The last owner of the device may have been a launched function.
    if (engine.thread.get_id() == std::this_thread::get_id()) {
      engine.thread.detach();
    } else {
      engine.thread.join();
    }
  }
}

void SimulatedCore::start(SimEngineKind kind) {
  Engine& engine = engines_[static_cast<std::size_t>(kind)];
  if (engine.thread.joinable()) return;
  try {
    engine.thread = start_without_signals([core = shared_from_this(), kind] { core->run_engine(kind); });
  } catch (const std::system_error& error) {
    throw DeviceError(fmt::format("{}: cannot start a thread: {}", label_, error.what()));
  }
}

void SimulatedCore::run_engine(SimEngineKind kind) {
  pthread_setname_np(pthread_self(), kThreadNames[static_cast<std::size_t>(kind)]);
  prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
  Engine& engine = engines_[static_cast<std::size_t>(kind)];
  Lock lock(mutex_);
  for (;;) {
    engine.wake.wait(lock, [&] { return closed_ || !engine.line.empty(); });
    if (closed_) return;
    const std::shared_ptr<SimQueue> queue = std::move(engine.line.front());
    engine.line.pop_front();
    run_one(lock, engine, queue);
  }
}

void SimulatedCore::run_one(Lock& lock, Engine& engine, const std::shared_ptr<SimQueue>& queue) {
  SimOp& op = queue->ops.front();  // stays in place: others only append, and drop_all() keeps the first
  const SimClock::time_point begin = std::max(queue->now, engine.free_at);
  const SimClock::time_point deadline = begin + op.cost;
  const std::string error = perform(lock, op, deadline);

  // Late wake-ups do not add up: the next work begins when this one ended in the model.
  const SimClock::time_point end = std::max(deadline, engine.free_at);
  engine.busy += end - begin;
  engine.free_at = queue->now = end;
  std::vector<SimOp> gone;
  gone.push_back(std::move(op));
  queue->ops.pop_front();
  queue->running = false;
  queue->done_number = gone.front().number;
  if (gone.front().mark) {
    gone.front().mark->error = error;
    gone.front().mark->at = end;
    gone.front().mark->done = true;
  } else if (queue->error.empty()) {
    queue->error = error;
  }
  if (!gone.front().fault.empty() && options_.faults.sticky) {
    lost_ = error + "; the device is lost";
    drop_all(lost_, gone);
  }
  if (!closed_) advance_all();
  done_.notify_all();
  lock.unlock();  // what the work owned may call the device when it is destroyed
  gone.clear();
  lock.lock();
}

// Empty on success. Holds `lock` at entry and exit, not while it works.
std::string SimulatedCore::perform(Lock& lock, const SimOp& op, SimClock::time_point deadline) {
  if (!op.fault.empty()) return sleep_until(lock, deadline) ? op.fault : op.fault + " (stopped)";
  std::string error;
  lock.unlock();
  const std::size_t half = op.bytes / 2;
  const auto begin = SimClock::now();
  if (op.bytes > 0) std::memcpy(op.dst, op.src, half);
  try {
    if (op.run) op.run();
  } catch (const std::exception& thrown) {
    error = fmt::format("{}: a launched function failed: {}", label_, thrown.what());
  } catch (...) {
    error = fmt::format("{}: a launched function failed with an unknown exception", label_);
  }
  const auto half_time = SimClock::now() - begin;
  lock.lock();
  if (op.bytes > 0) {
    if (!sleep_until(lock, deadline - half_time)) return label_ + " stopped during a copy";
    lock.unlock();
    std::memcpy(static_cast<std::byte*>(op.dst) + half, static_cast<const std::byte*>(op.src) + half, op.bytes - half);
    lock.lock();
  }
  // What took longer than the model says counts as long as it took.
  engines_[static_cast<std::size_t>(op.engine)].free_at = SimClock::now();
  if (!sleep_until(lock, deadline) && error.empty()) error = label_ + " stopped during this work";
  return error;
}

// False at once if the device closes or is lost.
bool SimulatedCore::sleep_until(Lock& lock, SimClock::time_point deadline) {
  const auto stopping = [this] { return closed_ || !lost_.empty(); };
  if (stop_.wait_until(lock, deadline - kSpin, stopping)) return false;
  if (SimClock::now() >= deadline) return true;
  lock.unlock();
  while (SimClock::now() < deadline) std::this_thread::yield();
  lock.lock();
  return true;
}

}  // namespace infeed
