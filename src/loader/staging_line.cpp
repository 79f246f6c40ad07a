#include "loader/staging_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "infeed/base/error.h"
#include "memory/fork_watch.h"
#include "worker/parent_guard.h"

namespace infeed {

Stager::Line::Line(Loader& loader, std::shared_ptr<Device> device, const StagerOptions& options)
    : loader_(loader),
      device_(std::move(device)),
      options_(options),
      home_(process_generation()),
      copies_(!options.zero_copy || device_->id().type != DeviceType::kCPU),
      copy_(device_->create_stream()),
      own_compute_(options.compute_stream ? nullptr : device_->create_stream()),
      compute_(options.compute_stream ? options.compute_stream : own_compute_.get()),
      registrations_(device_, static_cast<std::size_t>(options.max_registrations)) {
  watch_forks();
}

bool Stager::Line::ours() const noexcept { return process_generation() == home_; }

void Stager::Line::check_ours() const {
  if (!ours())
    throw ConfigError(
        "this stager belongs to the process that made it; in a forked child it is inert. Make loader, device and "
        "stager after the fork.");
}

// Late, so that a stager that is never used costs nothing, and state can be loaded before anything is read.
void Stager::Line::start_threads() {
  const SignalsBlocked blocked;  // the user's signals go to the user's threads
  try {
    if (!finisher_.joinable()) finisher_ = std::thread([this] { finish(); });
    if (!feeder_.joinable()) feeder_ = std::thread([this] { feed(); });
  } catch (const std::system_error& error) {
    throw MemoryError(
        fmt::format("no thread for staging: {}. Raise the limit of processes (ulimit -u).", error.what()));
  }
}

std::optional<StagedBatch> Stager::Line::next() {
  check_ours();
  std::unique_lock lock(mutex_);
  if (options_.max_held > 0 && held_ >= options_.max_held)
    throw MemoryError(fmt::format("{} staged batches are held, and max_held is {}. Drop some of them, or raise it.",
                                  held_, options_.max_held));
  counters_.last_next = Clock::now();
  if (!counters_.first_next) counters_.first_next = counters_.last_next;
  start_threads();
  if (!running_) {
    if (!position_) position_ = std::make_shared<const State>(loader_.state_dict());  // before anything is read ahead
    running_ = true;
    room_.notify_one();
  }
  wait_for_outcome(lock);
  hand_to_compute(ready_.front());

  Outcome outcome = std::move(ready_.front());
  ready_.pop_front();
  if (outcome.position) position_ = std::move(outcome.position);
  memory_came_free();
  if (!outcome.batch) stalled_ = false;
  if (!outcome.batch && !outcome.error) {
    running_ = false;
    beginning_ = true;
  }
  room_.notify_one();
  if (outcome.error) std::rethrow_exception(outcome.error);
  if (!outcome.batch) return std::nullopt;
  ++counters_.batches;
  ++held_;
  outcome.lease->lent = true;
  return StagedBatch(std::move(*outcome.batch));
}

void Stager::Line::wait_for_outcome(std::unique_lock<std::mutex>& lock) {
  const Clock::time_point begin = Clock::now();
  for (;;) {
    retire_dropped();
    if (!ready_.empty()) break;
    if (failed_) std::rethrow_exception(failed_);
    // While copies run, memory may come free without the user.
    if (shortage_ && copying_.empty()) {
      room_.notify_one();
      std::rethrow_exception(std::exchange(shortage_, nullptr));
    }
    news_.wait(lock);
  }
  counters_.waited += Clock::now() - begin;
  counters_.last_next = Clock::now();
}

// A stream that waits on a failed event fails itself: what is known to have failed stays out of the user's stream.
void Stager::Line::hand_to_compute(const Outcome& outcome) {
  if (!outcome.copied) return;
  try {
    static_cast<void>(outcome.copied->query());
    compute_->wait(*outcome.copied);
  } catch (const DeviceError& error) {
    fail(*outcome.batch, error.what());
    std::rethrow_exception(failed_);
  }
}

// What the user queued before this call may still use the dropped batches: they are free behind this mark.
void Stager::Line::retire_dropped() {
  while (!dropped_.empty()) {
    Slot& slot = *dropped_.back();
    if (!slot.consumed) slot.consumed = device_->create_event();
    compute_->record(*slot.consumed);
    free_.push_back(std::move(dropped_.back()));
    dropped_.pop_back();
    memory_came_free();
    room_.notify_one();
  }
}

// From a lease's end, on any thread.
void Stager::Line::take_back(std::unique_ptr<Slot> slot, bool was_lent) noexcept {
  if (!ours()) {
    static_cast<void>(slot.release());  // intentional: the device is the parent's
    return;
  }
  std::unique_lock lock(mutex_);
  held_ -= was_lent ? 1 : 0;
  memory_came_free();
  if (slot && closed_) {
    lock.unlock();
    slot.reset();  // the device waits for work that uses it; the compute stream may be gone
    return;
  }
  if (slot) (was_lent ? dropped_ : free_).push_back(std::move(slot));
  room_.notify_one();
  news_.notify_all();
}

// Frees device memory once the compute stream is past it.
void Stager::Line::discard(Slot& slot) noexcept {
  try {
    if (!slot.consumed) slot.consumed = device_->create_event();
    compute_->record(*slot.consumed);
    slot.consumed->synchronize();
  } catch (const Error&) {  // intentional: whoever looks at that stream or device meets the failure
  }
  slot.clear();
}

void Stager::Line::change(const std::function<void(Loader&)>& change) {
  check_ours();
  std::unique_lock lock(mutex_);
  settle(lock);
  try {
    change(loader_);
  } catch (...) {
    paused_ = false;
    if (position_) loader_.load_state_dict(*position_);  // what was read ahead is dropped: back to what was delivered
    throw;
  }
  paused_ = false;
  position_.reset();
}

// Until the feeder is at rest, no copy runs and nothing is staged.
void Stager::Line::settle(std::unique_lock<std::mutex>& lock) {
  paused_ = true;
  news_.wait(lock, [this] { return !feeding_ && copying_.empty(); });
  std::deque<Outcome> staged = std::exchange(ready_, {});
  drawn_.reset();
  drawn_position_.reset();
  beginning_ = true;
  running_ = stalled_ = false;
  memory_came_free();
  const bool failed = std::exchange(failed_, nullptr) != nullptr;
  lock.unlock();
  staged.clear();
  if (failed) clear_failure();
  lock.lock();
}

// Streams and events keep a failure until somebody has looked.
void Stager::Line::clear_failure() {
  try {
    copy_->synchronize();
  } catch (const DeviceError&) {  // intentional: next() has thrown it, or meets it again
  }
  std::unique_lock lock(mutex_);
  std::vector<std::unique_ptr<Slot>> slots = std::exchange(free_, {});
  lock.unlock();
  for (const auto& slot : slots) {
    try {
      if (slot->consumed) slot->consumed->synchronize();
    } catch (const DeviceError&) {  // intentional: the copy that comes next must not inherit it
    }
    slot->consumed.reset();
  }
  lock.lock();
  for (auto& slot : slots) free_.push_back(std::move(slot));
}

void Stager::Line::close() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stop_feeder_ = true;
    room_.notify_one();
  }
  if (feeder_.joinable()) feeder_.join();
  {
    const std::lock_guard lock(mutex_);
    stop_finisher_ = true;
    queued_.notify_one();
  }
  if (finisher_.joinable()) finisher_.join();
  std::unique_lock lock(mutex_);
  std::deque<Outcome> staged = std::exchange(ready_, {});
  lock.unlock();
  staged.clear();
  drawn_.reset();
  lock.lock();
  closed_ = true;
  std::vector<std::unique_ptr<Slot>> slots = std::exchange(free_, {});
  for (auto& slot : dropped_) slots.push_back(std::move(slot));
  dropped_.clear();
  lock.unlock();
  for (const auto& slot : slots) discard(*slot);
  registrations_.clear();
  copy_.reset();
}

State Stager::Line::state_dict() const {
  check_ours();
  const std::lock_guard lock(mutex_);
  return position_ ? *position_ : loader_.state_dict();
}

StagerStats Stager::Line::stats() const {
  check_ours();
  const std::lock_guard lock(mutex_);
  StagerStats stats;
  stats.batches = counters_.batches;
  stats.bytes = counters_.bytes;
  stats.copy_s = counters_.copy_s;
  if (stats.copy_s > 0) stats.copy_bytes_per_s = static_cast<double>(stats.bytes) / stats.copy_s;
  if (counters_.first_next)
    stats.elapsed_s = std::chrono::duration<double>(counters_.last_next - *counters_.first_next).count();
  if (stats.elapsed_s > 0) {
    stats.copy_share = std::min(1.0, stats.copy_s / stats.elapsed_s);
    stats.starved_share = std::min(1.0, std::chrono::duration<double>(counters_.waited).count() / stats.elapsed_s);
  }
  stats.batches_held = held_;
  stats.registrations = registrations_.count();
  stats.registered_bytes = registrations_.bytes();
  stats.device_bytes = usage_.bytes;
  return stats;
}

void Stager::Line::reset_stats() {
  const std::lock_guard lock(mutex_);
  counters_ = {};
}

}  // namespace infeed
