#include "device/plugin_device.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>
#include <thread>
#include <type_traits>
#include <utility>

#include "device/launch_fate.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

using Clock = std::chrono::steady_clock;

class PluginEvent final : public DeviceEvent {
 public:
  explicit PluginEvent(std::shared_ptr<PluginCore> core) : core_(std::move(core)) {
    core_->call_for_memory("making an event", core_->api().create_event, &handle_);
  }
  ~PluginEvent() override { core_->destroy(core_->api().destroy_event, handle_); }
  PluginEvent(const PluginEvent&) = delete;
  PluginEvent& operator=(const PluginEvent&) = delete;

  [[nodiscard]] const PluginCore* core() const noexcept { return core_.get(); }
  [[nodiscard]] void* handle() const noexcept { return handle_; }
  [[nodiscard]] LaunchFate::Mark mark() const {
    const std::lock_guard lock(mutex_);
    return mark_;
  }
  void set(LaunchFate::Mark mark) {
    const std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
  }

  [[nodiscard]] bool query() const override {
    std::int32_t passed = 0;
    core_->call("a look at an event", core_->api().query_event, handle_, &passed);
    if (passed != 0) check_fate();
    return passed != 0;
  }
  using DeviceEvent::synchronize;
  [[nodiscard]] bool synchronize(std::int64_t timeout_ms) const override;
  [[nodiscard]] double elapsed_ms(const DeviceEvent& start) const override;

 private:
  void check_fate() const {
    const LaunchFate::Mark mark = this->mark();
    if (mark.fate == nullptr) return;
    if (const std::string error = mark.fate->failure(mark.place); !error.empty()) throw DeviceError(error);
  }

  std::shared_ptr<PluginCore> core_;
  void* handle_ = nullptr;
  mutable std::mutex mutex_;
  LaunchFate::Mark mark_;
};

// Drivers wait without limit or not at all: a limit is looks with pauses between.
bool PluginEvent::synchronize(std::int64_t timeout_ms) const {
  if (timeout_ms < 0) {
    core_->call("waiting for an event", core_->api().synchronize_event, handle_);
    check_fate();
    return true;
  }
  const Clock::time_point end = Clock::now() + std::chrono::milliseconds(timeout_ms);
  for (auto pause = std::chrono::microseconds(20); !query(); pause = std::min(2 * pause, decltype(pause)(1000))) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

template <typename Event>
auto& event_of(const PluginCore& core, Event& event) {
  using Ours = std::conditional_t<std::is_const_v<Event>, const PluginEvent, PluginEvent>;
  auto* ours = dynamic_cast<Ours*>(&event);
  if (ours != nullptr && ours->core() == &core) return *ours;
  throw DeviceError(core.label() + ": the event belongs to another device");
}

double PluginEvent::elapsed_ms(const DeviceEvent& start) const {
  double ms = 0;
  core_->call("the time between events", core_->api().elapsed_ms, event_of(*core_, start).handle(), handle_, &ms);
  return ms;
}

/// Travels through the driver to its thread.
struct Launched {
  std::shared_ptr<PluginCore> core;
  std::shared_ptr<LaunchFate> fate;
  std::uint64_t number;
  std::function<void()> work;

  static void run(void* self) noexcept {
    const PluginCore::OnDriversThread here;
    const std::unique_ptr<Launched> launched(static_cast<Launched*>(self));
    std::string error;
    try {
      launched->work();
    } catch (const std::exception& thrown) {
      error = fmt::format("{}: a launched function failed: {}", launched->core->label(), thrown.what());
    } catch (...) {
      error = launched->core->label() + ": a launched function failed with an unknown exception";
    }
    launched->fate->settle(launched->number, error);
    launched->core->keep_for_later(std::move(launched->work));
  }
};

enum class Ownership : bool { kOwned, kBorrowed };

class PluginStream final : public DeviceStream {
 public:
  explicit PluginStream(std::shared_ptr<PluginCore> core) : core_(std::move(core)), ownership_(Ownership::kOwned) {
    core_->call_for_memory("making a stream", core_->api().create_stream, &handle_);
  }
  PluginStream(std::shared_ptr<PluginCore> core, void* borrowed)
      : core_(std::move(core)), handle_(borrowed), ownership_(Ownership::kBorrowed) {}
  ~PluginStream() override {
    if (ownership_ == Ownership::kOwned) core_->destroy(core_->api().destroy_stream, handle_);
  }
  PluginStream(const PluginStream&) = delete;
  PluginStream& operator=(const PluginStream&) = delete;

  void copy_async(void* dst, const void* src, std::size_t bytes, CopyDirection direction) override;
  void fill_async(void* dst, std::uint8_t value, std::size_t bytes) override {
    if (bytes == 0) return;
    if (dst == nullptr) throw DeviceError(fmt::format("{}: cannot fill {} bytes at {}", core_->label(), bytes, dst));
    core_->call("a fill", core_->api().fill, handle_, dst, std::int32_t{value}, std::uint64_t{bytes});
  }
  void record(DeviceEvent& event) override {
    PluginEvent& ours = event_of(*core_, event);
    core_->call("recording an event", core_->api().record, handle_, ours.handle());
    ours.set(LaunchFate::mark(fate()));
  }
  void wait(const DeviceEvent& event) override {
    const PluginEvent& ours = event_of(*core_, event);
    core_->call("waiting for an event", core_->api().wait, handle_, ours.handle());
    fate()->inherit(ours.mark());
  }
  void launch(std::function<void()> work) override;
  [[nodiscard]] bool query() const override {
    std::int32_t idle = 0;
    core_->call("a look at a stream", core_->api().query_stream, handle_, &idle);
    return idle != 0;
  }
  void synchronize() override {
    core_->call("waiting for a stream", core_->api().synchronize_stream, handle_);
    core_->drop_kept();
    const std::shared_ptr<LaunchFate> past = fate();
    const std::string error = past->failure();
    if (error.empty()) return;
    {
      const std::lock_guard lock(mutex_);
      if (fate_ == past) fate_ = std::make_shared<LaunchFate>();
    }
    throw DeviceError(error);
  }
  [[nodiscard]] void* native_handle() const noexcept override { return handle_; }

 private:
  [[nodiscard]] std::shared_ptr<LaunchFate> fate() const {
    const std::lock_guard lock(mutex_);
    return fate_;
  }

  std::shared_ptr<PluginCore> core_;
  void* handle_ = nullptr;
  Ownership ownership_;
  mutable std::mutex mutex_;  // fate_
  std::shared_ptr<LaunchFate> fate_ = std::make_shared<LaunchFate>();
};

// A driver may return before a copy of memory that is not registered is done: wait, as DeviceStream promises.
void PluginStream::copy_async(void* dst, const void* src, std::size_t bytes, CopyDirection direction) {
  core_->check_usable();
  if (bytes == 0) return;
  if (dst == nullptr || src == nullptr)
    throw DeviceError(fmt::format("{}: cannot copy {} bytes from {} to {}", core_->label(), bytes, src, dst));
  const void* host = direction == CopyDirection::kHostToDevice ? src : dst;
  const bool blocks = direction != CopyDirection::kDeviceToDevice && !core_->is_registered(host, bytes);
  core_->call("a copy", core_->api().copy, handle_, dst, src, std::uint64_t{bytes},
              static_cast<std::int32_t>(direction));
  if (blocks) core_->call("a copy", core_->api().synchronize_stream, handle_);
}

void PluginStream::launch(std::function<void()> work) {
  core_->check_usable();
  core_->drop_kept();
  const std::shared_ptr<LaunchFate> past = fate();
  auto launched = std::make_unique<Launched>(Launched{core_, past, past->launched(), std::move(work)});
  const std::uint64_t number = launched->number;
  try {
    core_->call("launching a function", core_->api().launch, handle_, &Launched::run,
                static_cast<void*>(launched.get()));
  } catch (...) {
    past->settle(number, {});
    throw;
  }
  static_cast<void>(launched.release());  // run() owns it
}

}  // namespace

PluginDevice::~PluginDevice() {
  core_->drop_kept();
  core_->close();
}

std::string PluginDevice::name() const {
  char text[256] = "";
  core_->call("its name", core_->api().describe, static_cast<char*>(text), std::uint64_t{sizeof text});
  return text;
}

DeviceMemoryInfo PluginDevice::memory_info() const {
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  core_->call("a look at its memory", core_->api().memory_info, &total, &free);
  return {.total_bytes = total, .free_bytes = free};
}

bool PluginDevice::is_registered(const void* ptr, std::size_t bytes) const {
  core_->check_usable();
  return core_->is_registered(ptr, bytes);
}

std::unique_ptr<DeviceStream> PluginDevice::create_stream() { return std::make_unique<PluginStream>(core_); }

std::unique_ptr<DeviceStream> PluginDevice::borrow_stream(void* native_handle) {
  core_->check_usable();
  return std::make_unique<PluginStream>(core_, native_handle);
}

std::unique_ptr<DeviceEvent> PluginDevice::create_event() { return std::make_unique<PluginEvent>(core_); }

void PluginDevice::record_all(DeviceEvent& event) {
  PluginEvent& ours = event_of(*core_, event);
  core_->call("recording an event", core_->api().record_all, ours.handle());
  ours.set({});
}

void PluginDevice::synchronize() {
  core_->call("waiting for it", core_->api().synchronize);
  core_->drop_kept();
}

DeviceKernels PluginDevice::kernels() const {
  core_->check_usable();
  return {.api = core_->kernels(), .device = core_->handle()};
}

void PluginDevice::push_range(const char* name) noexcept {
  if (core_->api().push_range != nullptr) core_->api().push_range(name);
}

void PluginDevice::pop_range() noexcept {
  if (core_->api().pop_range != nullptr) core_->api().pop_range();
}

}  // namespace infeed
