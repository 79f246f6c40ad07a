// Automatic mixed precision: the mode of the calling thread.

#include "infeed/train/autograd/autocast.h"

#include <optional>

#include "binder.h"

namespace infeed::python {
namespace {

struct AutocastScope {
  std::optional<amp::AutocastMode> mode;
};

}  // namespace

void bind_autocast(nb::module_& module) {
  nb::class_<AutocastScope>(module, "_AutocastScope")
      .def(
          "__init__",
          [](AutocastScope* self, DType dtype, bool enabled, bool cache_enabled) {
            new (self) AutocastScope();
            self->mode.emplace(dtype, enabled, cache_enabled);
          },
          "dtype"_a, "enabled"_a, "cache_enabled"_a)
      .def("close", [](AutocastScope& self) { self.mode.reset(); });
  module.def("_autocast", [] {
    const amp::AutocastState& state = amp::autocast_state();
    return nb::make_tuple(state.enabled, state.dtype, state.cache_enabled);
  });
}

}  // namespace infeed::python
