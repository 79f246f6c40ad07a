#pragma once
// Order between a test and what runs beside it, without a look at the clock.

#include <future>
#include <memory>
#include <span>
#include <thread>
#include <utility>

#include "infeed/device/simulated.h"

namespace infeed::testing {

/// Holds what waits at it up until open(): what is queued behind it has not begun, however long the test takes to look.
class Gate {
 public:
  Gate() = default;
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  /// Queues a wait for the gate. All streams of a device share one compute engine, so a second gate waits for the first.
  void close(DeviceStream& stream) {
    stream.launch([gate = opened_] { gate.wait(); });
  }
  /// The same, as a step that reads `reads`.
  void close(SimulatedDevice& device, DeviceStream& stream, std::span<const std::byte> reads) {
    device.compute(stream, {.run = [gate = opened_] { gate.wait(); }, .reads = {reads}});
  }
  void open() {
    if (!std::exchange(open_, true)) promise_.set_value();
  }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
  bool open_ = false;
};

/// Looks until it is so; the test's TIMEOUT is the limit.
template <typename Condition>
void wait_until(Condition condition) {
  while (!condition()) std::this_thread::yield();
}

}  // namespace infeed::testing
