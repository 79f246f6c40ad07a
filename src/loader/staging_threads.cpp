#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/phrase.h"
#include "infeed/base/error.h"
#include "loader/staging_line.h"
#include "loader/tracer.h"

namespace infeed {
namespace {

constexpr std::size_t kFieldAlignment = 256;  // of each array in a device buffer, as cudaMalloc's

std::size_t padded(std::size_t bytes) { return (bytes + kFieldAlignment - 1) / kFieldAlignment * kFieldAlignment; }

std::size_t device_size(const Batch& host) {
  std::size_t total = 0;
  for (const NamedArray& field : host.arrays()) total += padded(field.array.nbytes());
  return total;
}

}  // namespace

void Stager::Line::feed() noexcept {
  pthread_setname_np(pthread_self(), "infeed:stage");
  std::unique_lock lock(mutex_);
  for (;;) {
    room_.wait(lock, [this] { return stop_feeder_ || may_feed(); });
    if (stop_feeder_) return;
    feeding_ = true;
    frees_seen_ = frees_;
    lock.unlock();
    try {
      feed_one();
    } catch (...) {  // no memory for a few words
      const std::lock_guard failing(mutex_);
      failed_ = std::current_exception();
    }
    lock.lock();
    feeding_ = false;
    news_.notify_all();
  }
}

bool Stager::Line::may_feed() const noexcept {
  if (!running_ || paused_ || stalled_ || failed_ || shortage_) return false;
  const auto most = static_cast<std::size_t>(options_.in_flight);
  if (ready_.size() >= most || copying_.size() >= most) return false;
  if (beginning_ && !copying_.empty()) return false;
  // What was dropped is free at the next call: no need for new memory.
  return wants_slot() || dropped_.empty() || !free_.empty();
}

// Batches in flight and one in the user's hands: with fewer, copies wait for the step that should hide them.
bool Stager::Line::wants_slot() const noexcept { return !full_ && usage_.slots <= options_.in_flight; }

void Stager::Line::feed_one() {
  if (!drawn_) drawn_ = draw();
  if (!drawn_) return;
  if (drawn_->batch && !stage(*drawn_)) return;
  const std::lock_guard lock(mutex_);
  stalled_ = !drawn_->batch;
  ready_.push_back(std::move(*drawn_));
  drawn_.reset();
}

// nullopt: the loader has no memory for a batch, which may change as batches are dropped.
std::optional<Stager::Line::Outcome> Stager::Line::draw() {
  Outcome outcome;
  std::string shortage;
  const DeviceRange range(*device_, "infeed: wait for a batch");
  try {
    outcome.batch = loader_.next();
  } catch (const MemoryError& error) {
    outcome.error = std::current_exception();
    shortage = error.what();
  } catch (...) {
    outcome.error = std::current_exception();
  }
  outcome.position = std::make_shared<const State>(loader_.state_dict());
  // A sample that ran out of memory moves the loader on; a loader without room for a batch stays where it is.
  if (!shortage.empty() && drawn_position_ && *drawn_position_ == *outcome.position) {
    run_short(shortage);
    return std::nullopt;
  }
  const bool ended = !outcome.batch && !outcome.error;
  drawn_position_ = ended ? nullptr : outcome.position;
  if (ended) full_ = false;  // others may have given device memory back
  const std::lock_guard lock(mutex_);
  beginning_ = false;
  return outcome;
}

// From the host batch to one on the device; false where memory is short (the batch is kept) or the device failed.
bool Stager::Line::stage(Outcome& drawn) {
  if (!copies_) {
    auto arrays = drawn.batch->arrays();
    auto indices = drawn.batch->indices();
    const auto [epoch, number] = std::pair(drawn.batch->epoch(), drawn.batch->number());
    drawn.lease = std::make_shared<Lease>(shared_from_this(), nullptr, std::move(*drawn.batch));
    drawn.batch.emplace(std::move(arrays), std::move(indices), epoch, number, drawn.lease);
    return true;
  }
  std::unique_ptr<Slot> slot;
  try {
    slot = take_slot(device_size(*drawn.batch));
  } catch (const MemoryError& error) {
    run_short(error.what());
    return false;
  } catch (const DeviceError& error) {
    const std::lock_guard lock(mutex_);
    fail(*drawn.batch, error.what());
    drawn_.reset();
    return false;
  }
  const auto lease = std::make_shared<Lease>(shared_from_this(), std::move(slot), Batch());
  const DeviceRange range(*device_, "infeed: page-lock and queue copies");
  try {
    if (options_.register_memory) static_cast<void>(registrations_.lock(*drawn.batch));
    queue_copies(drawn, lease);
  } catch (const std::exception& error) {
    try {
      copy_->synchronize();         // the copies queued before read the host batch
    } catch (const DeviceError&) {  // intentional: the first failure tells
    }
    const std::lock_guard lock(mutex_);
    fail(*drawn.batch, error.what());
  }
  free_idle_slots(static_cast<std::size_t>(options_.in_flight) + 1);  // many were held at once
  if (drawn.copied) return true;
  drawn_.reset();
  return false;
}

// Sets drawn.copied when everything is queued.
void Stager::Line::queue_copies(Outcome& drawn, const std::shared_ptr<Lease>& lease) {
  Batch& host = *drawn.batch;
  Slot& slot = *lease->slot;
  Copying copying{.host = {}, .started = device_->create_event(), .copied = device_->create_event()};
  std::vector<NamedArray> arrays = host.arrays();
  if (slot.consumed) copy_->wait(*slot.consumed);
  copy_->record(*copying.started);
  std::byte* place = slot.memory.data();
  for (NamedArray& field : arrays) {
    const std::size_t nbytes = field.array.nbytes();
    if (nbytes > 0) copy_->copy_async(place, field.array.data, nbytes, CopyDirection::kHostToDevice);
    field.array.data = place;
    field.array.device = device_->id();
    place += padded(nbytes);
    copying.bytes += nbytes;
  }
  copy_->record(*copying.copied);

  Batch staged(std::move(arrays), host.indices(), host.epoch(), host.number(), lease);
  copying.host = std::move(host);
  drawn.batch = std::move(staged);
  drawn.lease = lease;
  drawn.copied = copying.copied;
  const std::lock_guard lock(mutex_);
  copying_.push_back(std::move(copying));
  queued_.notify_one();
}

// Device memory for a batch: new while too little is there, else that of a batch before.
std::unique_ptr<Stager::Line::Slot> Stager::Line::take_slot(std::size_t bytes) {
  std::unique_ptr<Slot> slot = wants_slot() ? nullptr : take_free_slot();
  if (slot) {
    fit(*slot, bytes);
    return slot;
  }
  try {
    slot = std::make_unique<Slot>(usage_);
    fit(*slot, bytes);
  } catch (const MemoryError&) {
    full_ = true;
    slot = take_free_slot();
    if (!slot) throw;
    fit(*slot, bytes);
  }
  return slot;
}

std::unique_ptr<Stager::Line::Slot> Stager::Line::take_free_slot() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) return nullptr;
  std::unique_ptr<Slot> slot = std::move(free_.front());
  free_.erase(free_.begin());
  return slot;
}

// All buffers get the size of the largest batch seen, and some room once batches turn out to differ.
void Stager::Line::fit(Slot& slot, std::size_t bytes) {
  if (slot.memory.size_bytes() >= bytes) return;
  if (slot.consumed) slot.consumed->synchronize();
  if (bytes > largest_) largest_ = largest_ == 0 ? bytes : padded(bytes + bytes / 8);
  try {
    slot.resize(device_, largest_);
  } catch (const MemoryError&) {
    if (free_idle_slots(0) == 0 && largest_ == bytes) throw;
    slot.resize(device_, bytes);
  }
}

// All but `keep`; returns how many.
std::size_t Stager::Line::free_idle_slots(std::size_t keep) noexcept {
  std::vector<std::unique_ptr<Slot>> idle;
  {
    const std::lock_guard lock(mutex_);
    while (free_.size() > keep) {
      idle.push_back(std::move(free_.front()));
      free_.erase(free_.begin());
    }
  }
  for (const auto& slot : idle) {
    try {
      if (slot->consumed) slot->consumed->synchronize();
    } catch (const DeviceError&) {  // intentional: its user meets the failure
    }
  }
  return idle.size();
}

// next() throws this if nothing comes free by itself.
void Stager::Line::run_short(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (frees_ != frees_seen_) return;  // meanwhile something did: try again
  shortage_ = std::make_exception_ptr(
      MemoryError(fmt::format("no memory for one more staged batch: {}. {} staged batches are held. Drop some of them, "
                              "or lower in_flight ({}) or batch_size.",
                              phrase(why), held_, options_.in_flight)));
}

// Under the lock. The first failure is the one that tells.
void Stager::Line::fail(const Batch& batch, const std::string& why) {
  if (!failed_)
    failed_ = std::make_exception_ptr(
        DeviceError(fmt::format("batch {} of epoch {} did not reach {}: {}. The batches before it are good; reset() or "
                                "load_state_dict(state_dict()) begins afresh.",
                                batch.number(), batch.epoch(), to_string(device_->id()), why)));
  news_.notify_all();
}

// The device's own clock is not ours: a copy is drawn as it ended here.
void Stager::Line::trace_copy(double copy_ms, std::uint64_t batch) {
  if (!Tracer::running()) return;
  const std::uint64_t end = monotonic_ns();
  Tracer::instance().name_track(this_track(), "copies to " + to_string(device_->id()));
  Tracer::instance().add({.name = "copy",
                          .category = "device",
                          .track = this_track(),
                          .begin_ns = end - static_cast<std::uint64_t>(copy_ms * 1e6),
                          .end_ns = end,
                          .batch = static_cast<std::int64_t>(batch)});
}

void Stager::Line::finish() noexcept {
  pthread_setname_np(pthread_self(), "infeed:copied");
  std::unique_lock lock(mutex_);
  for (;;) {
    queued_.wait(lock, [this] { return stop_finisher_ || !copying_.empty(); });
    if (copying_.empty()) return;
    const Copying& first = copying_.front();  // stays in place: others only append
    lock.unlock();
    double copy_ms = 0;
    std::string error;
    try {
      first.copied->synchronize();
      copy_ms = first.copied->elapsed_ms(*first.started);
    } catch (const DeviceError& failure) {
      error = failure.what();
    }
    lock.lock();
    if (!error.empty()) fail(first.host, error);
    trace_copy(copy_ms, first.host.number());
    counters_.copy_s += copy_ms * 1e-3;
    counters_.bytes += error.empty() ? first.bytes : 0;
    memory_came_free();
    copying_.pop_front();  // and with it the host batch: its extent is free
    room_.notify_one();
    news_.notify_all();
  }
}

}  // namespace infeed
