#pragma once
/// Devices by name.

#include <memory>
#include <string>

#include "infeed/base/export.h"
#include "infeed/device/device.h"

namespace infeed {

/// "cpu", "simulated:0" (default options), or a device that a plugin brings: "cuda:1". Without a number: 0.
///
/// While somebody holds it, the same name gives the same device, so that its registrations are counted in one place.
/// Plugins are looked for as libinfeed_<kind>.so: in each folder of $INFEED_PLUGIN_PATH (separated by ':'), then
/// beside infeed's own library; once loaded they stay. Nothing of a device is touched before somebody asks for it.
///
/// Threads: any. Errors: ConfigError for a name that is none; DeviceError where the plugin, what it needs, a driver or
/// the device is missing: it says which, and what to do. Nothing is kept of a failure: asking again looks again.
/// Fork: a child of a process that opened a plugin's device gets a DeviceError: drivers do not survive a fork.
[[nodiscard]] INFEED_API std::shared_ptr<Device> open_device(const std::string& name);

}  // namespace infeed
