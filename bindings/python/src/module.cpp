// infeed._native: one source a noun, joined here. CMakeLists.txt lists them; each is declared and called below.

#include <nanobind/nanobind.h>

#include "infeed/base/version.h"

namespace infeed::python {

void bind_exchange(nanobind::module_& module);

}  // namespace infeed::python

NB_MODULE(_native, module) {
  module.doc() = "infeed's engine. Use it through the package infeed.";
  module.attr("__version__") = infeed::version();
  infeed::python::bind_exchange(module);
}
