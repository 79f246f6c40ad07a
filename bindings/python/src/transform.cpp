#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "infeed/transform/compose.h"

namespace infeed::python {

namespace nb = nanobind;

// The classes of infeed/transforms.py describe themselves in the form of Compose::to_state(); the checks are its own.
void bind_transform(nb::module_& module) {
  nb::class_<Compose>(module, "Compose")
      .def("__init__",
           [](Compose* self, const std::string& state) {
             new (self) Compose(Compose::from_state(State::from_json(state)));
           })
      .def_prop_ro("dtype", [](const Compose& self) { return std::string(to_string(self.dtype())); })
      .def_prop_ro("output_shape",
                   [](const Compose& self) {
                     nb::list sizes;
                     for (const std::int64_t size : self.output_shape()) sizes.append(size);
                     return nb::tuple(sizes);
                   })
      .def("to_json", [](const Compose& self) { return self.to_state().to_json(); });
}

}  // namespace infeed::python
