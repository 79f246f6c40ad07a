#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/tuner/meter.h"
#include "infeed/tuner/sweep.h"

// Sweeps and searches whose runs are Python's. infeed/_tuning.py makes the runs, and objects of what is found.

namespace infeed::python {

namespace nb = nanobind;

namespace {

constexpr std::pair<const char*, WorkerKind> kKinds[] = {{"inline", WorkerKind::kInline},
                                                         {"thread", WorkerKind::kThread},
                                                         {"fork", WorkerKind::kFork},
                                                         {"spawn", WorkerKind::kSpawn}};

const char* name_of(WorkerKind kind) {
  return std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& known) { return known.second == kind; })
      ->first;
}

std::vector<WorkerKind> kinds_of(const std::vector<std::string>& names) {
  std::vector<WorkerKind> kinds;
  for (const std::string& name : names) {
    const auto* const known =
        std::find_if(std::begin(kKinds) + 1, std::end(kKinds), [&](const auto& one) { return one.first == name; });
    if (known == std::end(kKinds)) throw ConfigError("kinds are thread, fork and spawn, but got " + name + ".");
    kinds.push_back(known->second);
  }
  return kinds;
}

/// What Python raises of infeed's errors is one of them here: it makes a setting a refused one.
[[noreturn]] void rethrow(const nb::python_error& error) {
  const nb::module_ errors = nb::module_::import_("infeed.errors");
  if (error.matches(errors.attr("ConfigError"))) throw ConfigError(nb::str(error.value()).c_str());
  if (error.matches(errors.attr("MemoryError"))) throw MemoryError(nb::str(error.value()).c_str());
  if (error.matches(errors.attr("WorkerError"))) throw WorkerError(nb::str(error.value()).c_str());
  throw nb::python_error(error);
}

RunSetting runs_of(const nb::callable& run) {
  return [run](const WorkerSetting& setting) {
    try {
      return nb::cast<RunFigures>(run(name_of(setting.kind), setting.workers, setting.prefetch));
    } catch (const nb::python_error& error) {
      rethrow(error);
    }
  };
}

template <typename Found>
nb::tuple texts_of(const Found& found) {
  return nb::make_tuple(found.to_state().to_json(), found.str(), found.csv(), found.svg());
}

nb::tuple run_sweep(const nb::callable& run, const std::vector<std::string>& kinds, const std::vector<int>& workers,
                    const std::vector<int>& prefetch, int repetitions, std::int64_t samples) {
  return texts_of(
      sweep(runs_of(run),
            {.kinds = kinds_of(kinds), .workers = workers, .prefetch = prefetch, .repetitions = repetitions}, samples));
}

nb::tuple run_search(const nb::callable& run, const std::vector<std::string>& kinds, int max_workers,
                     std::uint64_t memory_budget, std::uint64_t batch_bytes, double tolerance, int max_trials,
                     int repetitions) {
  return texts_of(tune(measure_runs(runs_of(run), repetitions), {.kinds = kinds_of(kinds),
                                                                 .max_workers = max_workers,
                                                                 .memory_budget = memory_budget,
                                                                 .batch_bytes = batch_bytes,
                                                                 .tolerance = tolerance,
                                                                 .most_trials = max_trials}));
}

void bind_figures(nb::module_& module) {
  nb::class_<RunFigures>(module, "RunFigures", nb::is_final(), "Of one run of a setting.")
      .def(nb::init<>())
      .def_rw("samples_per_s", &RunFigures::samples_per_s)
      .def_rw("memory_bytes", &RunFigures::memory_bytes)
      .def_rw("utilisation", &RunFigures::utilisation)
      .def_rw("transfer_share", &RunFigures::transfer_share)
      .def_rw("first_batch_ms", &RunFigures::first_batch_ms)
      .def_rw("others_share", &RunFigures::others_share)
      .def_rw("sample_s", &RunFigures::sample_s)
      .def_rw("cpu_share", &RunFigures::cpu_share)
      .def_rw("stopped", &RunFigures::stopped)
      .def_rw("verdict", &RunFigures::verdict);
  nb::class_<Meter>(module, "Meter", nb::is_final(), "What the processes `pids` take from now on.")
      .def(nb::init<std::vector<std::int64_t>>(), nb::arg("pids"))
      .def("others_share", &Meter::others_share)
      .def("memory_bytes", &Meter::memory_bytes);
}

}  // namespace

void bind_tuner(nb::module_& module) {
  bind_figures(module);
  const char* const returns = "run(kind, workers, prefetch) gives RunFigures. Returns JSON, text, CSV and SVG.";
  module.def("sweep", &run_sweep, nb::arg("run"), nb::arg("kinds"), nb::arg("workers"), nb::arg("prefetch"),
             nb::arg("repetitions"), nb::arg("samples"), returns);
  module.def("tune", &run_search, nb::arg("run"), nb::arg("kinds"), nb::arg("max_workers"), nb::arg("memory_budget"),
             nb::arg("batch_bytes"), nb::arg("tolerance"), nb::arg("max_trials"), nb::arg("repetitions"), returns);
}

}  // namespace infeed::python
