#include "device/simulated_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "infeed/base/error.h"

namespace infeed {
namespace {

bool overlap(ByteRange a, ByteRange b) {
  return !a.empty() && !b.empty() && a.data() < b.data() + b.size() && b.data() < a.data() + a.size();
}

bool any_overlap(const std::vector<ByteRange>& ranges, ByteRange range) {
  return std::any_of(ranges.begin(), ranges.end(), [&](ByteRange mine) { return overlap(mine, range); });
}

bool any_overlap(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
  return std::any_of(a.begin(), a.end(), [&](ByteRange mine) { return any_overlap(b, mine); });
}

bool conflict(const SimOp& a, const SimOp& b) {
  return any_overlap(a.writes, b.writes) || any_overlap(a.writes, b.reads) || any_overlap(a.reads, b.writes);
}

ByteRange range_of(const void* ptr, std::size_t bytes) { return {static_cast<const std::byte*>(ptr), bytes}; }

SimClock::duration seconds(double value) {
  return std::chrono::duration_cast<SimClock::duration>(std::chrono::duration<double>(value));
}

}  // namespace

// --- queues ---

std::shared_ptr<SimQueue> SimulatedCore::open_queue() {
  const Lock lock = lock_alive();
  auto queue = std::make_shared<SimQueue>();
  queue->id = next_queue_id_++;
  queues_.push_back(queue);
  return queue;
}

void SimulatedCore::close_queue(SimQueue& queue) noexcept {
  if (!owned_here()) return;
  const Lock lock(mutex_);
  queue.closed = true;
  std::erase_if(queues_, [](const auto& open) { return open->closed && open->ops.empty(); });
}

void SimulatedCore::enqueue(SimQueue& queue, SimOp op) {
  if (options_.check_races) check_races(queue, op);
  if (op.kind == SimOp::Kind::kEngine) start(op.engine);
  op.number = ++queue.last_number;
  if (queue.ops.empty()) queue.now = std::max(queue.now, SimClock::now());
  queue.ops.push_back(std::move(op));
  advance_all();
}

// One round may pass a mark that lets a queue looked at earlier go on: until nothing moves.
void SimulatedCore::advance_all() {
  bool moved = true;
  while (moved) {
    moved = false;
    for (const auto& queue : queues_) moved = advance(queue) || moved;
  }
  std::erase_if(queues_, [](const auto& queue) { return queue->closed && queue->ops.empty(); });
  done_.notify_all();
}

bool SimulatedCore::advance(const std::shared_ptr<SimQueue>& queue) {
  bool moved = false;
  while (!queue->running && !queue->ops.empty()) {
    SimOp& op = queue->ops.front();
    if (op.kind == SimOp::Kind::kEngine) {
      queue->running = true;
      Engine& engine = engines_[static_cast<std::size_t>(op.engine)];
      engine.line.push_back(queue);
      engine.wake.notify_one();
      return moved;
    }
    if (op.kind == SimOp::Kind::kWait && !op.mark->done) return moved;
    finish_first(*queue);
    moved = true;
  }
  return moved;
}

// A record or wait whose turn has come.
void SimulatedCore::finish_first(SimQueue& queue) {
  const SimOp& op = queue.ops.front();
  if (op.kind == SimOp::Kind::kRecord) {
    op.mark->error = queue.error;
    op.mark->at = queue.now;
    op.mark->done = true;
  } else {
    if (queue.error.empty()) queue.error = op.mark->error;
    queue.now = std::max(queue.now, op.mark->at);
  }
  queue.done_number = op.number;
  queue.ops.pop_front();
}

// What is at its engine stays: run_one() sees the device stopping and ends it.
void SimulatedCore::drop_all(const std::string& reason, std::vector<SimOp>& dropped) {
  for (auto& engine : engines_) {
    for (const auto& queue : engine.line) queue->running = false;
    engine.line.clear();
  }
  for (const auto& queue : queues_) {
    const std::size_t kept = queue->running ? 1 : 0;
    while (queue->ops.size() > kept) {
      SimOp& op = queue->ops.back();
      if (op.mark && op.kind != SimOp::Kind::kWait) {
        op.mark->error = reason;
        op.mark->done = true;
      }
      dropped.push_back(std::move(op));
      queue->ops.pop_back();
    }
    if (kept == 0) queue->done_number = queue->last_number;
  }
  done_.notify_all();
  stop_.notify_all();
}

// --- work ---

void SimulatedCore::copy(SimQueue& queue, void* dst, const void* src, std::size_t bytes, CopyDirection direction) {
  Lock lock = lock_alive();
  if (bytes == 0) return;
  dst = host_address(dst);
  src = host_address(src);
  SimOp op = make_copy(dst, src, bytes, direction);
  const void* host = direction == CopyDirection::kHostToDevice ? src : dst;
  const bool blocks = direction != CopyDirection::kDeviceToDevice && !registrations_.contains(host, bytes);
  if (blocks) op.mark = std::make_shared<SimMark>();
  if (++num_copies_ == options_.faults.fail_copy) {
    op.fault = fmt::format("{}: copy {} of {} bytes failed (injected fault)", label_, num_copies_, bytes);
  }
  const std::shared_ptr<SimMark> mark = op.mark;
  enqueue(queue, std::move(op));
  if (!blocks) return;
  done_.wait(lock, [&] { return mark->done; });
  if (!mark->error.empty()) throw DeviceError(mark->error);
}

SimOp SimulatedCore::make_copy(void* dst, const void* src, std::size_t bytes, CopyDirection direction) const {
  SimOp op{.dst = dst, .src = src, .bytes = bytes, .reads = {range_of(src, bytes)}, .writes = {range_of(dst, bytes)}};
  if (dst == nullptr || src == nullptr) {
    throw DeviceError(fmt::format("{}: cannot copy {} bytes from {} to {}", label_, bytes, src, dst));
  }
  if (direction != CopyDirection::kHostToDevice) check_device_range(src, bytes);
  if (direction != CopyDirection::kDeviceToHost) check_device_range(dst, bytes);
  const bool within = direction == CopyDirection::kDeviceToDevice;
  const void* host = direction == CopyDirection::kHostToDevice ? src : dst;
  const double rate = within ? options_.device_bandwidth_bytes_per_s : options_.bandwidth_bytes_per_s;
  const double factor = within || registrations_.contains(host, bytes) ? 1.0 : options_.unregistered_factor;
  const double moving_s = rate > 0 ? static_cast<double>(bytes) / rate : 0.0;
  op.cost = seconds(options_.latency_us * 1e-6 + factor * moving_s);
  op.engine = within                                      ? SimEngineKind::kCompute
              : direction == CopyDirection::kHostToDevice ? SimEngineKind::kDma0
                                                          : SimEngineKind::kDma1;
  return op;
}

void SimulatedCore::fill(SimQueue& queue, void* dst, std::uint8_t value, std::size_t bytes) {
  const Lock lock = lock_alive();
  if (bytes == 0) return;
  dst = host_address(dst);
  check_device_range(dst, bytes);
  enqueue(queue,
          SimOp{.run = [dst, value, bytes] { std::memset(dst, value, bytes); }, .writes = {range_of(dst, bytes)}});
}

void SimulatedCore::compute(SimQueue& queue, SimulatedWork work) {
  const Lock lock = lock_alive();
  enqueue(queue, SimOp{.cost = seconds(work.duration_us * 1e-6),
                       .run = std::move(work.run),
                       .reads = std::move(work.reads),
                       .writes = std::move(work.writes)});
}

void SimulatedCore::record(SimQueue& queue, std::shared_ptr<SimMark>& mark) {
  const Lock lock = lock_alive();
  mark = std::make_shared<SimMark>();
  enqueue(queue, SimOp{.kind = SimOp::Kind::kRecord, .mark = mark});
}

// A queue of its own waits for a record in each.
void SimulatedCore::record_all(std::shared_ptr<SimMark>& mark) {
  const Lock lock = lock_alive();
  std::vector<std::shared_ptr<SimMark>> marks;
  const std::vector<std::shared_ptr<SimQueue>> open = queues_;
  for (const auto& queue : open) {
    marks.push_back(std::make_shared<SimMark>());
    enqueue(*queue, SimOp{.kind = SimOp::Kind::kRecord, .mark = marks.back()});
  }
  const auto joined = std::make_shared<SimQueue>();
  joined->id = next_queue_id_++;
  queues_.push_back(joined);
  for (const auto& each : marks) enqueue(*joined, SimOp{.kind = SimOp::Kind::kWait, .mark = each});
  mark = std::make_shared<SimMark>();
  joined->closed = true;
  enqueue(*joined, SimOp{.kind = SimOp::Kind::kRecord, .mark = mark});
}

void SimulatedCore::wait(SimQueue& queue, const std::shared_ptr<SimMark>& mark) {
  const Lock lock = lock_alive();
  if (mark) enqueue(queue, SimOp{.kind = SimOp::Kind::kWait, .mark = mark});
}

// --- looking and waiting ---

bool SimulatedCore::idle(const SimQueue& queue) {
  const Lock lock = lock_alive();
  return queue.ops.empty();
}

void SimulatedCore::synchronize(SimQueue& queue) {
  Lock lock = lock_alive();
  const std::uint64_t target = queue.last_number;
  done_.wait(lock, [&] { return closed_ || !lost_.empty() || queue.done_number >= target; });
  std::string error = std::exchange(queue.error, {});
  if (!lost_.empty()) error = lost_;
  if (closed_) error = label_ + " was destroyed with work queued";
  if (!error.empty()) throw DeviceError(error);
}

void SimulatedCore::synchronize() {
  Lock lock = lock_alive();
  std::vector<std::pair<std::shared_ptr<SimQueue>, std::uint64_t>> targets;
  for (const auto& queue : queues_) targets.emplace_back(queue, queue->last_number);
  const auto reached = [](const auto& target) { return target.first->done_number >= target.second; };
  done_.wait(lock, [&] { return closed_ || !lost_.empty() || std::all_of(targets.begin(), targets.end(), reached); });
  if (!lost_.empty()) throw DeviceError(lost_);
}

bool SimulatedCore::passed(const std::shared_ptr<SimMark>& mark) {
  const Lock lock = lock_alive();
  if (mark && !mark->error.empty()) throw DeviceError(mark->error);
  return !mark || mark->done;
}

bool SimulatedCore::wait_for(const std::shared_ptr<SimMark>& mark, std::int64_t timeout_ms) {
  Lock lock = lock_alive();
  if (!mark) return true;
  const auto passed = [&] { return mark->done; };
  if (timeout_ms < 0) {
    done_.wait(lock, passed);
  } else if (!done_.wait_for(lock, std::chrono::milliseconds(timeout_ms), passed)) {
    return false;
  }
  if (!mark->error.empty()) throw DeviceError(mark->error);
  return true;
}

double SimulatedCore::elapsed_ms(const std::shared_ptr<SimMark>& from, const std::shared_ptr<SimMark>& to) {
  const Lock lock = lock_alive();
  if (from && to && from->done && to->done) return std::chrono::duration<double, std::milli>(to->at - from->at).count();
  throw DeviceError(fmt::format("{}: elapsed_ms needs two events that are recorded and passed", label_));
}

// Ordered is what the stream has seen through events; the same stream's own work always is.
void SimulatedCore::check_races(SimQueue& queue, const SimOp& op) {
  if (op.kind == SimOp::Kind::kRecord) {
    op.mark->seen = queue.seen;
    op.mark->seen[queue.id] = queue.last_number;
  } else if (op.kind == SimOp::Kind::kWait) {
    for (const auto& [id, number] : op.mark->seen) queue.seen[id] = std::max(queue.seen[id], number);
  }
  for (const auto& other : queues_) {
    if (other.get() == &queue) continue;
    const auto seen = queue.seen.find(other->id);
    const std::uint64_t ordered = seen == queue.seen.end() ? 0 : seen->second;
    for (const SimOp& pending : other->ops) {
      if (pending.number <= ordered || !conflict(op, pending)) continue;
      throw DeviceError(
          fmt::format("{}: work of stream {} conflicts with pending work {} of stream {}; let it wait for an "
                      "event recorded behind that",
                      label_, queue.id, pending.number, other->id));
    }
  }
}

const SimOp* SimulatedCore::find_user(ByteRange range, bool write) const {
  for (const auto& queue : queues_) {
    for (const SimOp& op : queue->ops) {
      if (any_overlap(op.writes, range) || (write && any_overlap(op.reads, range))) return &op;
    }
  }
  return nullptr;
}

double SimulatedCore::busy_seconds(SimEngineKind kind) {
  const Lock lock = lock_alive();
  return std::chrono::duration<double>(engines_[static_cast<std::size_t>(kind)].busy).count();
}

void SimulatedCore::check_unused(ByteRange range, bool write) {
  const Lock lock = lock_alive();
  const SimOp* user = find_user(range, write);
  if (user == nullptr) return;
  throw DeviceError(fmt::format("{}: {} bytes at {} are {} while pending work uses them; wait for its event first",
                                label_, range.size(), static_cast<const void*>(range.data()),
                                write ? "written" : "read"));
}

void SimulatedCore::await_unused(Lock& lock, ByteRange range, const char* what) {
  if (options_.check_races && find_user(range, true) != nullptr) {
    throw DeviceError(fmt::format("{}: {} bytes at {} are {} while pending work uses them", label_, range.size(),
                                  static_cast<const void*>(range.data()), what));
  }
  done_.wait(lock, [&] { return closed_ || find_user(range, true) == nullptr; });
}

}  // namespace infeed
