#include "infeed/loader/trace.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <memory>

#include "infeed/doctor/doctor.h"

namespace infeed::python {

namespace nb = nanobind;

namespace {

struct RunningTrace {
  std::unique_ptr<Trace> trace;
};

const Trace& ours(const RunningTrace& self) {
  if (!self.trace) throw nb::value_error("this trace has ended.");
  return *self.trace;
}

}  // namespace

void bind_trace(nb::module_& module) {
  nb::class_<RunningTrace>(module, "Trace", nb::is_final(), "Records every loader of this process. See infeed.trace.")
      .def(
          "__init__",
          [](RunningTrace* self, std::string path) {
            new (self) RunningTrace{std::make_unique<Trace>(std::move(path))};
          },
          nb::arg("path") = "")
      .def(
          "end", [](RunningTrace& self) { self.trace.reset(); }, nb::call_guard<nb::gil_scoped_release>(),
          "Ends it, and writes the file. Idempotent.")
      .def("json", [](const RunningTrace& self) { return ours(self).json(); })
      .def(
          "write", [](const RunningTrace& self, const std::string& path) { ours(self).write(path); }, nb::arg("path"));
  module.def("trace_running", &Trace::running);
  module.def(
      "trace_span",
      [](const std::string& name, std::uint64_t begin_ns, std::uint64_t end_ns) {
        Trace::span(name, begin_ns, end_ns);
      },
      nb::arg("name"), nb::arg("begin_ns"), nb::arg("end_ns"),
      "Of time.perf_counter_ns(). Nothing where no trace runs.");
  module.def(
      "examine",
      [](const std::string& root, const LoaderStats* stats) {
        DoctorReport report = examine_machine({.root = root});
        if (stats != nullptr) examine_loader(*stats, report);
        return nb::make_tuple(report.to_state().to_json(), report.str());
      },
      nb::arg("root") = "", nb::arg("stats") = nb::none(),
      nb::sig("def examine(root: str = '', stats: LoaderStats | None = None) -> tuple[str, str]"),
      "What infeed.doctor is made of: JSON, and text.");
}

}  // namespace infeed::python
