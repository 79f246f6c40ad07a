#include "infeed/device/device.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>

#include "infeed/device/open.h"

namespace infeed::python {

namespace nb = nanobind;

namespace {

using Unlocked = nb::gil_scoped_release;

std::unique_ptr<DeviceEvent> record_all(Device& self) {
  const Unlocked unlocked;
  std::unique_ptr<DeviceEvent> event = self.create_event();
  self.record_all(*event);
  return event;
}

void* pointer(std::uintptr_t address) { return reinterpret_cast<void*>(address); }

void bind_event(nb::module_& module) {
  nb::class_<DeviceEvent>(module, "DeviceEvent", nb::is_final())
      .def("query", &DeviceEvent::query, "Whether all work before the mark is done.")
      .def(
          "synchronize",
          [](const DeviceEvent& self, std::int64_t timeout_ms) {
            const Unlocked unlocked;
            return self.synchronize(timeout_ms);
          },
          nb::arg("timeout_ms") = -1, "Waits for the mark; False: not within `timeout_ms` (negative: no limit).");
}

}  // namespace

// What infeed.torch needs of a device beside torch: marks behind all streams, and page locks that are counted.
void bind_device(nb::module_& module) {
  bind_event(module);
  nb::class_<Device>(module, "Device", nb::is_final(), "A device of open_device(). While it is held it stays open.")
      .def_prop_ro("name", &Device::name)
      .def("__str__", [](const Device& self) { return to_string(self.id()); })
      .def("record_all", &record_all, nb::keep_alive<0, 1>(),
           "A mark behind all that was queued on the device so far, in all streams, whoever made them.")
      .def(
          "register_host",
          [](Device& self, std::uintptr_t address, std::size_t nbytes) {
            const Unlocked unlocked;
            self.register_host(pointer(address), nbytes);
          },
          nb::arg("address"), nb::arg("nbytes"), "Page-locks memory for the device.")
      .def(
          "unregister_host",
          [](Device& self, std::uintptr_t address) {
            const Unlocked unlocked;
            self.unregister_host(pointer(address));
          },
          nb::arg("address"))
      .def(
          "is_registered",
          [](const Device& self, std::uintptr_t address, std::size_t nbytes) {
            return self.is_registered(pointer(address), nbytes);
          },
          nb::arg("address"), nb::arg("nbytes"));
  module.def(
      "open_device",
      [](const std::string& name) {
        const Unlocked unlocked;  // may load a plugin, and a driver
        return open_device(name);
      },
      nb::arg("name"), "\"cpu\", \"simulated:0\", \"cuda:0\": the last by the plugin. ConfigError, DeviceError.");
}

}  // namespace infeed::python
