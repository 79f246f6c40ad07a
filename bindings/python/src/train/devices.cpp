// What devices of tensors are asked beside tensors.

#include "binder.h"
#include "infeed/base/error.h"
#include "infeed/device/open.h"
#include "infeed/train/tensor/device.h"
#include "types.h"

namespace infeed::python {

void bind_devices(nb::module_& module) {
  module.def(
      "_opens",
      [](const std::string& name) {
        try {
          static_cast<void>(open_device(name));
          return true;
        } catch (const DeviceError&) {
          return false;
        }
      },
      "Whether there is such a device, and a plugin for its kind.");
  module.def(
      "synchronize",
      [](Where device) {
        const DeviceId id = device;
        const nb::gil_scoped_release unlocked;
        synchronize(id);
      },
      "device"_a, "Waits for all work of the tensors on `device`.");
  module.def(
      "device_memory_stats",
      [](Where device) {
        const MemoryStats stats = device_memory_stats(device);
        nb::dict result;
        result["in_use_bytes"] = stats.in_use_bytes;
        result["peak_in_use_bytes"] = stats.peak_in_use_bytes;
        result["cached_bytes"] = stats.cached_bytes;
        result["hits"] = stats.hits;
        result["misses"] = stats.misses;
        return result;
      },
      "device"_a, "Memory of the tensors on `device`, and of its cache of free blocks.");
  module.def(
      "empty_device_cache", [](Where device) { empty_device_cache(device); }, "device"_a,
      "Gives the free blocks of the cache back to `device`.");
}

}  // namespace infeed::python
