#include "device/plugin_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "infeed/base/error.h"

namespace infeed {
namespace {

void check_table(const infeed_device_api& api, const PluginFile& file) {
  const bool complete = api.open && api.close && api.describe && api.memory_info && api.allocate && api.release &&
                        api.register_host && api.unregister_host && api.create_stream && api.destroy_stream &&
                        api.copy && api.fill && api.launch && api.query_stream && api.synchronize_stream &&
                        api.create_event && api.destroy_event && api.record && api.record_all && api.wait &&
                        api.query_event && api.synchronize_event && api.elapsed_ms && api.synchronize;
  if (!complete)
    throw DeviceError(fmt::format("plugin '{}' (ABI {}.{}) has gaps in its table of devices; build it for this infeed.",
                                  file.path(), file.table().abi_major, file.table().abi_minor));
}

thread_local bool on_drivers_thread = false;

struct Parked {
  std::mutex mutex;
  std::vector<std::unique_ptr<PluginCore>> cores;
};
Parked& parked() {
  static auto* const cores = new Parked;  // intentional: a driver's thread may come when statics are gone
  return *cores;
}

}  // namespace

PluginCore::OnDriversThread::OnDriversThread() noexcept { on_drivers_thread = true; }
PluginCore::OnDriversThread::~OnDriversThread() { on_drivers_thread = false; }

void PluginCore::end(PluginCore* last) noexcept {
  if (!last->owned_here()) return;
  std::unique_ptr<PluginCore> owner(last);
  if (!on_drivers_thread) return;
  const std::lock_guard lock(parked().mutex);
  parked().cores.push_back(std::move(owner));
}

void PluginCore::end_parked() noexcept {
  std::vector<std::unique_ptr<PluginCore>> gone;
  const std::lock_guard lock(parked().mutex);
  gone.swap(parked().cores);
}

void PluginCore::close() noexcept {
  closed_ = true;
  if (owned_here()) end_parked();
}

PluginCore::PluginCore(std::shared_ptr<const PluginFile> file, const infeed_device_api& api, int index)
    : file_(std::move(file)),
      id_{static_cast<DeviceType>(api.device_type), index},
      label_(fmt::format("{}:{}", api.name, index)) {
  std::memcpy(&api_, &api, std::min<std::size_t>(api.struct_size, sizeof(api_)));
  check_table(api_, *file_);
}

std::shared_ptr<PluginCore> PluginCore::open(std::shared_ptr<const PluginFile> file, const infeed_device_api& api,
                                             int index) {
  end_parked();
  std::shared_ptr<PluginCore> core(new PluginCore(std::move(file), api, index), &PluginCore::end);
  char error[kErrorBytes] = "";
  const int code = core->api_.open(index, &core->handle_, error, kErrorBytes);
  if (code != INFEED_OK)
    throw DeviceError(fmt::format("{} cannot be opened: {} Loaders without a device work.", core->label_, error));
  return core;
}

PluginCore::~PluginCore() {
  drop_kept();
  if (handle_ != nullptr) api_.close(handle_);
}

const infeed_kernel_api* PluginCore::kernels() const noexcept {
  const infeed_kernel_api* const kernels = api_.kernels;
  return kernels != nullptr && kernels->struct_size >= sizeof(infeed_kernel_api) ? kernels : nullptr;
}

void PluginCore::check_usable() const {
  if (!owned_here())
    throw DeviceError(fmt::format(
        "{} belongs to process {}, and a driver does not survive a fork; open devices after the fork, or start workers "
        "by spawn.",
        label_, owner_pid_));
  if (closed_) throw DeviceError(label_ + " was destroyed; keep the device longer than what it made");
  if (!is_lost_) return;
  const std::lock_guard lock(mutex_);
  throw DeviceError(lost_);
}

void PluginCore::fail(int code, const char* what, const char* text) {
  const std::string message =
      fmt::format("{}: {} failed: {}", label_, what, *text != '\0' ? text : "the driver says no more");
  if (code == INFEED_ERROR_MEMORY) throw MemoryError(message);
  if (code == INFEED_ERROR_CONFIG) throw ConfigError(message);
  if (code == INFEED_ERROR_DEVICE_LOST) {
    const std::lock_guard lock(mutex_);
    if (lost_.empty()) lost_ = message + " The device is lost for this process: every further call fails. Restart it.";
    is_lost_ = true;
    throw DeviceError(lost_);
  }
  throw DeviceError(message);
}

void* PluginCore::allocate(std::size_t bytes) {
  check_usable();
  if (bytes == 0) return nullptr;
  void* ptr = nullptr;
  call_for_memory("allocation", api_.allocate, std::uint64_t{bytes}, &ptr);
  const std::lock_guard lock(mutex_);
  allocations_[ptr] = bytes;
  return ptr;
}

void PluginCore::free(void* ptr) {
  if (ptr == nullptr) return;
  check_usable();
  {
    const std::lock_guard lock(mutex_);
    if (allocations_.erase(ptr) == 0)
      throw DeviceError(fmt::format("{}: {} was not allocated here, or is already freed", label_, ptr));
  }
  call("free", api_.synchronize);
  call("free", api_.release, ptr);
}

void PluginCore::register_host(void* ptr, std::size_t bytes) {
  check_usable();
  {
    const std::lock_guard lock(mutex_);
    if (!registrations_.add(label_, ptr, bytes)) return;
  }
  try {
    call_for_memory("page-locking", api_.register_host, ptr, std::uint64_t{bytes});
  } catch (...) {
    const std::lock_guard lock(mutex_);
    registrations_.remove(ptr);
    throw;
  }
}

void PluginCore::unregister_host(void* ptr) {
  check_usable();
  {
    const std::lock_guard lock(mutex_);
    const std::size_t bytes = registrations_.size_of(label_, ptr);
    registrations_.remove(ptr);
    if (registrations_.contains(ptr, bytes)) return;
  }
  call("unlocking", api_.synchronize);
  call("unlocking", api_.unregister_host, ptr);
}

bool PluginCore::is_registered(const void* ptr, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  return registrations_.contains(ptr, bytes);
}

void PluginCore::keep_for_later(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(work));
}

void PluginCore::drop_kept() noexcept {
  std::vector<std::function<void()>> gone;  // destroyed without the lock
  const std::lock_guard lock(mutex_);
  gone.swap(kept_);
}

}  // namespace infeed
