#pragma once
/// What SimulatedDevice, its streams and its events share: the queues, the engines and one lock over all of it.

#include <unistd.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "device/tables.h"
#include "infeed/device/simulated.h"

namespace infeed {

using SimClock = std::chrono::steady_clock;
using ByteRange = std::span<const std::byte>;
/// Vector clock: stream id -> number of its last work that is known to come before.
using SimSeen = std::map<std::uint64_t, std::uint64_t>;

/// One record of an event. Shared by the event, the record in its stream and the streams that wait.
struct SimMark {
  bool done = false;
  std::string error;
  SimClock::time_point at{};  ///< the model's time
  SimSeen seen;
};

enum class SimEngineKind : std::uint8_t { kDma0, kDma1, kCompute };

struct SimOp {
  enum class Kind : std::uint8_t { kEngine, kRecord, kWait };
  Kind kind = Kind::kEngine;
  SimEngineKind engine = SimEngineKind::kCompute;
  SimClock::duration cost{};
  void* dst = nullptr;  ///< a copy, if bytes > 0
  const void* src = nullptr;
  std::size_t bytes = 0;
  std::function<void()> run{};
  std::vector<ByteRange> reads{}, writes{};
  std::shared_ptr<SimMark> mark{};  ///< kRecord: to set; kWait: to await; kEngine: to set, if the caller waits for it
  std::string fault{};              ///< fails with this text instead of running
  std::uint64_t number = 0;         ///< within its stream, from 1
};

struct SimQueue {
  std::uint64_t id = 0;
  std::deque<SimOp> ops;  ///< the first one is at its engine if `running`
  bool running = false;
  bool closed = false;         ///< nobody can add work any more
  std::string error;           ///< first failure that is not reported yet
  SimClock::time_point now{};  ///< the model's time: when the last work ended
  std::uint64_t last_number = 0, done_number = 0;
  SimSeen seen;
};

/// Work goes: queue (in order) -> engine's line -> done. Every change of a queue is followed by advance_all(), which
/// moves whatever can move. Lives until the last stream or event is gone; close() ends the threads.
class SimulatedCore : public std::enable_shared_from_this<SimulatedCore> {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// In a forked child the last owner leaks the core: its locks and threads are the parent's.
  static std::shared_ptr<SimulatedCore> create(const SimulatedOptions& options);
  [[nodiscard]] bool owned_here() const noexcept { return ::getpid() == owner_pid_; }
  [[nodiscard]] const SimulatedOptions& options() const noexcept { return options_; }
  [[nodiscard]] const std::string& label() const noexcept { return label_; }
  void close() noexcept;

  /// The address that the device gives out for memory, and the memory of an address. With hidden_memory the first is
  /// none of x86-64's.
  [[nodiscard]] void* given_address(void* memory) const noexcept;
  [[nodiscard]] static void* host_address(const void* given) noexcept;

  [[nodiscard]] DeviceMemoryInfo memory_info();
  [[nodiscard]] void* allocate(std::size_t bytes);
  void free(void* given);
  void register_host(void* ptr, std::size_t bytes);
  void unregister_host(void* ptr);
  [[nodiscard]] bool is_registered(const void* ptr, std::size_t bytes);

  [[nodiscard]] std::shared_ptr<SimQueue> open_queue();
  void close_queue(SimQueue& queue) noexcept;
  void copy(SimQueue& queue, void* dst, const void* src, std::size_t bytes, CopyDirection direction);
  void fill(SimQueue& queue, void* dst, std::uint8_t value, std::size_t bytes);
  void compute(SimQueue& queue, SimulatedWork work);
  void record(SimQueue& queue, std::shared_ptr<SimMark>& mark);
  void record_all(std::shared_ptr<SimMark>& mark);
  void wait(SimQueue& queue, const std::shared_ptr<SimMark>& mark);
  [[nodiscard]] bool idle(const SimQueue& queue);
  void synchronize(SimQueue& queue);
  void synchronize();

  [[nodiscard]] bool passed(const std::shared_ptr<SimMark>& mark);
  [[nodiscard]] bool wait_for(const std::shared_ptr<SimMark>& mark, std::int64_t timeout_ms);
  [[nodiscard]] double elapsed_ms(const std::shared_ptr<SimMark>& from, const std::shared_ptr<SimMark>& to);
  void check_unused(ByteRange range, bool write);
  [[nodiscard]] double busy_seconds(SimEngineKind kind);

 private:
  struct Engine {
    std::deque<std::shared_ptr<SimQueue>> line;  ///< queues whose first work waits for this engine
    std::condition_variable wake;
    std::thread thread;
    SimClock::time_point free_at{};  ///< the model's time
    SimClock::duration busy{};
  };

  explicit SimulatedCore(const SimulatedOptions& options);
  [[nodiscard]] Lock lock_any() const;    ///< throws in a forked child and after close()
  [[nodiscard]] Lock lock_alive() const;  ///< throws on a lost device too
  void enqueue(SimQueue& queue, SimOp op);
  void advance_all();
  [[nodiscard]] bool advance(const std::shared_ptr<SimQueue>& queue);
  void finish_first(SimQueue& queue);
  void drop_all(const std::string& reason, std::vector<SimOp>& dropped);
  void check_races(SimQueue& queue, const SimOp& op);
  [[nodiscard]] const SimOp* find_user(ByteRange range, bool write) const;
  void await_unused(Lock& lock, ByteRange range, const char* what);
  [[nodiscard]] SimOp make_copy(void* dst, const void* src, std::size_t bytes, CopyDirection direction) const;
  void check_device_range(const void* ptr, std::size_t bytes) const;

  // simulated_engine.cpp
  void start(SimEngineKind kind);
  void run_engine(SimEngineKind kind);
  void run_one(Lock& lock, Engine& engine, const std::shared_ptr<SimQueue>& queue);
  [[nodiscard]] std::string perform(Lock& lock, const SimOp& op, SimClock::time_point deadline);
  [[nodiscard]] bool sleep_until(Lock& lock, SimClock::time_point deadline);

  const SimulatedOptions options_;
  const std::string label_;
  const ::pid_t owner_pid_;
  mutable std::mutex mutex_;      // over everything below
  std::condition_variable done_;  // some work is done, or the device closed or lost
  std::condition_variable stop_;
  bool closed_ = false;
  std::string lost_;
  std::array<Engine, 3> engines_;
  std::vector<std::shared_ptr<SimQueue>> queues_;
  HostAllocations allocations_;
  HostRegistrations registrations_;
  std::uint64_t next_queue_id_ = 1, num_copies_ = 0, num_allocations_ = 0, num_registrations_ = 0;
};

}  // namespace infeed
