// infeed._native: one source a noun, joined here. CMakeLists.txt lists them; each is declared and called below.

#include <nanobind/nanobind.h>

#include "infeed/base/version.h"

namespace infeed::python {

void bind_exchange(nanobind::module_& module);
void bind_message(nanobind::module_& module);
void bind_signals(nanobind::module_& module);
void bind_errors(nanobind::module_& module);
void bind_array(nanobind::module_& module);
void bind_transform(nanobind::module_& module);
void bind_dataset(nanobind::module_& module);
void bind_sampler(nanobind::module_& module);
void bind_batch(nanobind::module_& module);
void bind_options(nanobind::module_& module);
void bind_stats(nanobind::module_& module);
void bind_trace(nanobind::module_& module);
void bind_tuner(nanobind::module_& module);
void bind_device(nanobind::module_& module);
void bind_loader(nanobind::module_& module);
void bind_image(nanobind::module_& module);

}  // namespace infeed::python

NB_MODULE(_native, module) {
  nanobind::set_leak_warnings(false);  // batches may live on in modules at the end
  module.doc() = "infeed's engine. Use it through the package infeed.";
  module.attr("__version__") = infeed::version();
  infeed::python::bind_stats(module);
  infeed::python::bind_trace(module);
  infeed::python::bind_tuner(module);
  infeed::python::bind_exchange(module);
  infeed::python::bind_message(module);
  infeed::python::bind_signals(module);
  infeed::python::bind_errors(module);
  infeed::python::bind_array(module);
  infeed::python::bind_transform(module);
  infeed::python::bind_dataset(module);
  infeed::python::bind_sampler(module);
  infeed::python::bind_batch(module);
  infeed::python::bind_options(module);
  infeed::python::bind_device(module);
  infeed::python::bind_loader(module);
  infeed::python::bind_image(module);
}
