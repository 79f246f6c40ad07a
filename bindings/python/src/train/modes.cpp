// Switches of the calling thread. Python's classes around them are context managers and decorators.

#include "binder.h"
#include "infeed/train/autograd/anomaly.h"
#include "infeed/train/autograd/grad_mode.h"
#include "infeed/train/parallel.h"
#include "infeed/train/tensor/warning.h"

namespace infeed::python {
namespace {

void warn_in_python(const std::string& text) {
  const nb::gil_scoped_acquire locked;
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) != 0) throw nb::python_error();
}

std::string python_stack() {
  const nb::gil_scoped_acquire locked;
  const nb::object lines = nb::module_::import_("traceback").attr("format_stack")();
  return nb::cast<std::string>(nb::str("").attr("join")(lines));
}

}  // namespace

void bind_modes(nb::module_& module) {
  module.def("is_grad_enabled", [] { return grad_enabled(); });
  module.def("_set_grad_enabled", [](bool enabled) { set_grad_enabled(enabled); });
  module.def("is_inference_mode_enabled", [] { return is_inference_mode_enabled(); });
  module.def("_set_inference_mode", [](bool enabled) { set_inference_mode(enabled); });
  module.def("_set_detect_anomaly", [](bool enabled, bool check_nan) { set_detect_anomaly(enabled, check_nan); });
  module.def("is_anomaly_enabled", [] { return is_anomaly_enabled(); });
  module.def("is_anomaly_check_nan_enabled", [] { return is_anomaly_check_nan_enabled(); });
  module.def("get_num_threads", [] { return num_threads(); });
  module.def("set_num_threads", [](int count) { set_num_threads(count); });
  set_warning_handler(warn_in_python);
  set_trace_source(python_stack);
}

}  // namespace infeed::python
