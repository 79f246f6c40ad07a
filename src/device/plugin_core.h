#pragma once
/// What a plugin's device, its streams and its events share: the opened device and the books over it.

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/plugin_file.h"
#include "device/tables.h"
#include "infeed/base/error.h"
#include "infeed/device/device.h"
#include "infeed/plugin/device_abi.h"

namespace infeed {

/// Calls the table, with its rules: nothing in a forked child, nothing after the device is lost. Lives until the last
/// stream or event is gone. Threads: any.
class PluginCore {
 public:
  static constexpr std::size_t kErrorBytes = 1024;

  /// Opens the device; throws DeviceError. In a forked child the last owner leaks it: it is the parent's.
  [[nodiscard]] static std::shared_ptr<PluginCore> open(std::shared_ptr<const PluginFile> file,
                                                        const infeed_device_api& api, int index);
  PluginCore(const PluginCore&) = delete;
  PluginCore& operator=(const PluginCore&) = delete;
  ~PluginCore();

  [[nodiscard]] const infeed_device_api& api() const noexcept { return api_; }
  /// Null where there are none, and where they are those of another minor version.
  [[nodiscard]] const infeed_kernel_api* kernels() const noexcept;
  [[nodiscard]] void* handle() const noexcept { return handle_; }
  [[nodiscard]] DeviceId id() const noexcept { return id_; }
  [[nodiscard]] const std::string& label() const noexcept { return label_; }
  [[nodiscard]] bool owned_here() const noexcept { return ::getpid() == owner_pid_; }

  /// One call of the table that can fail: `function(device, arguments..., error, error_bytes)`. `what` names it in the
  /// error. Throws MemoryError, ConfigError, DeviceError.
  template <typename Function, typename... Arguments>
  void call_for_memory(const char* what, Function function, Arguments... arguments) {
    check_usable();
    char error[kErrorBytes] = "";
    const int code = function(handle_, arguments..., error, kErrorBytes);
    if (code != INFEED_OK) fail(code, what, error);
  }
  /// The same for what takes no memory: want of it is a failure of work that was queued before, and a DeviceError.
  template <typename Function, typename... Arguments>
  void call(const char* what, Function function, Arguments... arguments) {
    try {
      call_for_memory(what, function, arguments...);
    } catch (const MemoryError& error) {
      throw DeviceError(error.what());
    }
  }
  /// The same for a call without a text, in destructors.
  template <typename... Arguments>
  void destroy(void (*function)(void*, Arguments...), Arguments... arguments) noexcept {
    if (owned_here()) function(handle_, arguments...);
  }
  /// Throws DeviceError in a forked child, after close() and on a lost device.
  void check_usable() const;
  void close() noexcept;

  [[nodiscard]] void* allocate(std::size_t bytes);
  void free(void* ptr);
  void register_host(void* ptr, std::size_t bytes);
  void unregister_host(void* ptr);
  [[nodiscard]] bool is_registered(const void* ptr, std::size_t bytes) const;

  /// While one lives, this thread is the driver's and may not call it: what would end here ends later, on a thread of ours.
  class OnDriversThread {
   public:
    OnDriversThread() noexcept;
    ~OnDriversThread();
    OnDriversThread(const OnDriversThread&) = delete;
    OnDriversThread& operator=(const OnDriversThread&) = delete;
  };
  /// What a launched function owned may call the device when it is destroyed, which the driver's thread must not.
  void keep_for_later(std::function<void()> work);
  void drop_kept() noexcept;

 private:
  PluginCore(std::shared_ptr<const PluginFile> file, const infeed_device_api& api, int index);
  static void end(PluginCore* last) noexcept;
  static void end_parked() noexcept;
  [[noreturn]] void fail(int code, const char* what, const char* text);

  const std::shared_ptr<const PluginFile> file_;
  infeed_device_api api_{};
  const DeviceId id_;
  const std::string label_;
  const ::pid_t owner_pid_ = ::getpid();
  void* handle_ = nullptr;
  std::atomic<bool> closed_{false};
  std::atomic<bool> is_lost_{false};

  mutable std::mutex mutex_;  // all below
  std::string lost_;
  std::map<void*, std::size_t> allocations_;
  HostRegistrations registrations_;
  std::vector<std::function<void()>> kept_;
};

}  // namespace infeed
