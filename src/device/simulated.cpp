#include "infeed/device/simulated.h"

#include <fmt/format.h>

#include <type_traits>
#include <utility>

#include "device/simulated_core.h"
#include "device/simulated_kernels.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

class SimulatedEvent final : public DeviceEvent {
 public:
  explicit SimulatedEvent(std::shared_ptr<SimulatedCore> core) : core_(std::move(core)) {}

  [[nodiscard]] const SimulatedCore* core() const noexcept { return core_.get(); }
  /// The last record; empty before the first. Guarded, since a stream may record while others look.
  [[nodiscard]] std::shared_ptr<SimMark> mark() const {
    const std::lock_guard lock(mutex_);
    return mark_;
  }
  void set(std::shared_ptr<SimMark> mark) {
    const std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
  }

  [[nodiscard]] bool query() const override { return core_->passed(mark()); }
  using DeviceEvent::synchronize;
  [[nodiscard]] bool synchronize(std::int64_t timeout_ms) const override { return core_->wait_for(mark(), timeout_ms); }
  [[nodiscard]] double elapsed_ms(const DeviceEvent& start) const override;

 private:
  std::shared_ptr<SimulatedCore> core_;
  mutable std::mutex mutex_;
  std::shared_ptr<SimMark> mark_;
};

template <typename Event>
auto& event_of(const SimulatedCore& core, Event& event) {
  using Ours = std::conditional_t<std::is_const_v<Event>, const SimulatedEvent, SimulatedEvent>;
  auto* ours = dynamic_cast<Ours*>(&event);
  if (ours != nullptr && ours->core() == &core) return *ours;
  throw DeviceError(core.label() + ": the event belongs to another device");
}

double SimulatedEvent::elapsed_ms(const DeviceEvent& start) const {
  return core_->elapsed_ms(event_of(*core_, start).mark(), mark());
}

class SimulatedStream final : public DeviceStream {
 public:
  explicit SimulatedStream(std::shared_ptr<SimulatedCore> core) : core_(std::move(core)), queue_(core_->open_queue()) {}
  ~SimulatedStream() override { core_->close_queue(*queue_); }
  SimulatedStream(const SimulatedStream&) = delete;
  SimulatedStream& operator=(const SimulatedStream&) = delete;

  [[nodiscard]] const SimulatedCore* core() const noexcept { return core_.get(); }
  [[nodiscard]] SimQueue& queue() const noexcept { return *queue_; }

  void copy_async(void* dst, const void* src, std::size_t bytes, CopyDirection direction) override {
    core_->copy(*queue_, dst, src, bytes, direction);
  }
  void fill_async(void* dst, std::uint8_t value, std::size_t bytes) override {
    core_->fill(*queue_, dst, value, bytes);
  }
  void record(DeviceEvent& event) override {
    SimulatedEvent& ours = event_of(*core_, event);
    std::shared_ptr<SimMark> mark;
    core_->record(*queue_, mark);
    ours.set(std::move(mark));
  }
  void wait(const DeviceEvent& event) override { core_->wait(*queue_, event_of(*core_, event).mark()); }
  void launch(std::function<void()> work) override { core_->compute(*queue_, {.run = std::move(work)}); }
  [[nodiscard]] bool query() const override { return core_->idle(*queue_); }
  void synchronize() override { core_->synchronize(*queue_); }
  [[nodiscard]] void* native_handle() const noexcept override { return queue_.get(); }

 private:
  std::shared_ptr<SimulatedCore> core_;
  std::shared_ptr<SimQueue> queue_;
};

void check(const SimulatedOptions& options) {
  const auto refuse = [](const char* name, double value, const char* bound) {
    throw ConfigError(fmt::format("SimulatedDevice: {} is {}; it must be {}", name, value, bound));
  };
  if (!(options.bandwidth_bytes_per_s >= 0))
    refuse("bandwidth_bytes_per_s", options.bandwidth_bytes_per_s, "0 or more");
  if (!(options.device_bandwidth_bytes_per_s >= 0)) {
    refuse("device_bandwidth_bytes_per_s", options.device_bandwidth_bytes_per_s, "0 or more");
  }
  if (!(options.latency_us >= 0)) refuse("latency_us", options.latency_us, "0 or more");
  if (!(options.unregistered_factor >= 1)) refuse("unregistered_factor", options.unregistered_factor, "1 or more");
  if (options.memory_bytes == 0) refuse("memory_bytes", 0, "more than 0");
  if (options.index < 0) refuse("index", options.index, "0 or more");
}

}  // namespace

SimulatedDevice::SimulatedDevice(const SimulatedOptions& options) {
  check(options);
  core_ = SimulatedCore::create(options);
}

SimulatedDevice::~SimulatedDevice() { core_->close(); }

DeviceId SimulatedDevice::id() const noexcept { return {DeviceType::kSimulated, core_->options().index}; }
DeviceMemoryInfo SimulatedDevice::memory_info() const { return core_->memory_info(); }
void* SimulatedDevice::allocate(std::size_t bytes) { return core_->allocate(bytes); }
void SimulatedDevice::free(void* ptr) { core_->free(ptr); }
void SimulatedDevice::register_host(void* ptr, std::size_t bytes) { core_->register_host(ptr, bytes); }
void SimulatedDevice::unregister_host(void* ptr) { core_->unregister_host(ptr); }
bool SimulatedDevice::is_registered(const void* ptr, std::size_t bytes) const {
  return core_->is_registered(ptr, bytes);
}

std::unique_ptr<DeviceStream> SimulatedDevice::create_stream() { return std::make_unique<SimulatedStream>(core_); }
std::unique_ptr<DeviceEvent> SimulatedDevice::create_event() { return std::make_unique<SimulatedEvent>(core_); }
void SimulatedDevice::record_all(DeviceEvent& event) {
  std::shared_ptr<SimMark> mark;
  core_->record_all(mark);
  event_of(*core_, event).set(std::move(mark));
}
void SimulatedDevice::synchronize() { core_->synchronize(); }
DeviceKernels SimulatedDevice::kernels() const { return {.api = &simulated_kernels(), .device = core_.get()}; }

void SimulatedDevice::compute(DeviceStream& stream, SimulatedWork work) {
  const auto* ours = dynamic_cast<const SimulatedStream*>(&stream);
  if (ours == nullptr || ours->core() != core_.get()) {
    throw DeviceError(core_->label() + ": the stream belongs to another device");
  }
  if (!(work.duration_us >= 0)) {
    throw ConfigError(fmt::format("SimulatedWork: duration_us is {}; it must be 0 or more", work.duration_us));
  }
  for (auto* ranges : {&work.reads, &work.writes}) {
    for (auto& range : *ranges)
      range = {static_cast<const std::byte*>(SimulatedCore::host_address(range.data())), range.size()};
  }
  core_->compute(ours->queue(), std::move(work));
}

void SimulatedDevice::check_host_access(std::span<const std::byte> range, bool write) const {
  core_->check_unused({static_cast<const std::byte*>(SimulatedCore::host_address(range.data())), range.size()}, write);
}

double SimulatedDevice::busy_seconds(CopyDirection direction) const {
  switch (direction) {
    case CopyDirection::kHostToDevice: return core_->busy_seconds(SimEngineKind::kDma0);
    case CopyDirection::kDeviceToHost: return core_->busy_seconds(SimEngineKind::kDma1);
    case CopyDirection::kDeviceToDevice: break;
  }
  return core_->busy_seconds(SimEngineKind::kCompute);
}

}  // namespace infeed
