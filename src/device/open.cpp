#include "infeed/device/open.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <string_view>
#include <vector>

#include "base/library_folder.h"
#include "base/plugin_file.h"
#include "device/plugin_device.h"
#include "infeed/base/error.h"
#include "infeed/device/host.h"
#include "infeed/device/simulated.h"

namespace infeed {
namespace {

struct DeviceName {
  std::string kind;
  int index = 0;
};

DeviceName parse(const std::string& name) {
  const std::size_t colon = name.find(':');
  DeviceName result{name.substr(0, colon)};
  bool good = !result.kind.empty() && result.kind.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
  if (colon != std::string::npos) {
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + colon + 1, end, result.index);
    good = good && error == std::errc() && stop == end && result.index >= 0;
  }
  if (!good)
    throw ConfigError(fmt::format("'{}' is no device; name one as \"cuda:0\", \"cpu\" or \"simulated:0\".", name));
  return result;
}

std::vector<std::filesystem::path> plugin_folders() {
  std::vector<std::filesystem::path> folders;
  const char* variable = std::getenv("INFEED_PLUGIN_PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (colon > 0) folders.emplace_back(rest.substr(0, colon));
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  folders.push_back(library_folder());
  folders.push_back((library_folder() / "../lib").lexically_normal());  // of the command
  return folders;
}

std::shared_ptr<const PluginFile> load_plugin(const DeviceName& name) {
  const std::string file = fmt::format("libinfeed_{}.so", name.kind);
  std::vector<std::string> tried;
  for (const auto& folder : plugin_folders()) {
    const std::filesystem::path path = folder / file;
    tried.push_back(folder.string());
    if (::access(path.c_str(), F_OK) != 0) continue;
    try {
      return PluginFile::load(path, PluginFile::Unload::kNever);
    } catch (const ConfigError& error) {
      throw DeviceError(fmt::format(
          "{}:{} cannot be opened: {} If a library that it needs is missing, install it (for cuda: CUDA 13's "
          "runtime, libcudart.so.13) or name its folder in LD_LIBRARY_PATH. Loaders without a device work.",
          name.kind, name.index, error.what()));
    }
  }
  throw DeviceError(
      fmt::format("{}:{} cannot be opened: the plugin {} is in none of {}. Build it (docs/devices.md), or name its "
                  "folder in INFEED_PLUGIN_PATH. Loaders without a device work, and the devices cpu and simulated.",
                  name.kind, name.index, file, fmt::join(tried, ", ")));
}

std::atomic<::pid_t> driver_pid{0};  // of the process that opened a plugin's device

// Looked at without a lock: it may have been held when the parent forked.
void check_not_forked(const DeviceName& name) {
  if (driver_pid != 0 && driver_pid != ::getpid())
    throw DeviceError(fmt::format(
        "{}:{} cannot be opened: process {} had opened a device before it forked this one, and a driver does "
        "not survive a fork. Open devices after the fork, or start processes by spawn.",
        name.kind, name.index, driver_pid.load()));
}

std::shared_ptr<Device> open_of_plugin(const DeviceName& name) {
  std::shared_ptr<const PluginFile> file = load_plugin(name);
  for (const infeed_device_api* api : std::span(file->table().devices, file->table().num_devices)) {
    if (api == nullptr || api->name == nullptr || name.kind != api->name) continue;
    auto device = std::make_shared<PluginDevice>(PluginCore::open(std::move(file), *api, name.index));
    driver_pid = ::getpid();
    return device;
  }
  throw DeviceError(
      fmt::format("{}:{} cannot be opened: plugin '{}' brings no such devices.", name.kind, name.index, file->path()));
}

std::shared_ptr<Device> make_of_ours(const DeviceName& name) {
  if (name.kind == "simulated") return std::make_shared<SimulatedDevice>(SimulatedOptions{.index = name.index});
  if (name.index == 0) return std::make_shared<HostDevice>();
  throw ConfigError(fmt::format("'cpu:{}' is no device; the host is cpu:0.", name.index));
}

}  // namespace

std::shared_ptr<Device> open_device(const std::string& name) {
  struct Opened {
    std::weak_ptr<Device> device;
    ::pid_t pid;
  };
  static std::mutex mutex;
  static std::map<std::string, Opened> opened;
  const DeviceName wanted = parse(name);
  const bool is_ours = wanted.kind == "cpu" || wanted.kind == "simulated";
  if (!is_ours) check_not_forked(wanted);
  const std::string key = fmt::format("{}:{}", wanted.kind, wanted.index);
  const std::lock_guard lock(mutex);
  Opened& known = opened[key];
  if (std::shared_ptr<Device> device = known.pid == ::getpid() ? known.device.lock() : nullptr) return device;
  std::shared_ptr<Device> device = is_ours ? make_of_ours(wanted) : open_of_plugin(wanted);
  known = {device, ::getpid()};
  return device;
}

}  // namespace infeed
