#include "infeed/loader/stats.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace infeed::python {

namespace nb = nanobind;

namespace {

nb::dict knobs(const Verdict& self) {
  nb::dict dict;
  for (const Knob& knob : self.knobs) dict[knob.option.c_str()] = knob.value;
  return dict;
}

void bind_worker_stats(nb::module_& module) {
  nb::class_<WorkerStats>(module, "WorkerStats")
      .def_ro("id", &WorkerStats::id)
      .def_ro("pid", &WorkerStats::pid)
      .def_ro("samples", &WorkerStats::samples)
      .def_ro("busy_s", &WorkerStats::busy_s)
      .def_ro("wait_s", &WorkerStats::wait_s)
      .def_ro("in_hand_s", &WorkerStats::in_hand_s)
      .def_ro("stopped", &WorkerStats::stopped)
      .def_ro("restarts", &WorkerStats::restarts);
}

void bind_verdict(nb::module_& module) {
  nb::class_<Verdict>(module, "Verdict", "What bounds a pipeline, and the knob to turn. str() gives both sentences.")
      .def_prop_ro("bound", [](const Verdict& self) { return to_string(self.bound); })
      .def_prop_ro("cause", [](const Verdict& self) { return to_string(self.cause); })
      .def_ro("share", &Verdict::share)
      .def_ro("finding", &Verdict::finding)
      .def_ro("advice", &Verdict::advice)
      .def_prop_ro("knobs", &knobs, nb::sig("def knobs(self) -> dict[str, str]"))
      .def("__str__", &Verdict::str);
}

void bind_staging(nb::module_& module) {
  nb::class_<StagerStats>(module, "StagerStats", "Of batches on their way to a device. str() is for people.")
      .def(nb::init<>())
      .def_rw("batches", &StagerStats::batches)
      .def_rw("bytes", &StagerStats::bytes)
      .def_rw("elapsed_s", &StagerStats::elapsed_s)
      .def_rw("copy_s", &StagerStats::copy_s)
      .def_rw("copy_bytes_per_s", &StagerStats::copy_bytes_per_s)
      .def_rw("copy_share", &StagerStats::copy_share)
      .def_rw("starved_share", &StagerStats::starved_share)
      .def_rw("batches_held", &StagerStats::batches_held)
      .def_rw("registrations", &StagerStats::registrations)
      .def_rw("registered_bytes", &StagerStats::registered_bytes)
      .def_rw("device_bytes", &StagerStats::device_bytes)
      .def("__str__", &StagerStats::str);
}

using S = LoaderStats;

void add_times(nb::class_<S>& cls) {
  cls.def_ro("batches", &S::batches)
      .def_ro("samples", &S::samples)
      .def_ro("elapsed_s", &S::elapsed_s)
      .def_ro("samples_per_s", &S::samples_per_s)
      .def_ro("first_batch_ms", &S::first_batch_ms)
      .def_ro("wait_s", &S::wait_s)
      .def_ro("sampler_s", &S::sampler_s)
      .def_ro("hand_over_s", &S::hand_over_s)
      .def_ro("trainer_s", &S::trainer_s)
      .def_ro("starved_share", &S::starved_share)
      .def_ro("waits", &S::waits)
      .def_ro("longest_wait_ms", &S::longest_wait_ms)
      .def_ro("worst_tenth_share", &S::worst_tenth_share)
      .def_ro("blocked_share", &S::blocked_share)
      .def_ro("read_us", &S::read_us)
      .def_ro("decode_us", &S::decode_us)
      .def_ro("transform_us", &S::transform_us)
      .def_ro("collate_us", &S::collate_us)
      .def_ro("other_us", &S::other_us)
      .def_ro("bytes_read", &S::bytes_read)
      .def_ro("on_cpu_share", &S::on_cpu_share)
      .def_ro("cpu_queue_share", &S::cpu_queue_share)
      .def_ro("trainer_cpu_queue_share", &S::trainer_cpu_queue_share);
}

void add_workers_and_memory(nb::class_<S>& cls) {
  cls.def_ro("num_workers", &S::num_workers)
      .def_ro("threads_per_worker", &S::threads_per_worker)
      .def_ro("prefetch", &S::prefetch)
      .def_ro("prefetch_factor", &S::prefetch_factor)
      .def_ro("usable_cpus", &S::usable_cpus)
      .def_ro("memory_limit", &S::memory_limit)
      .def_ro("short_of_memory_share", &S::short_of_memory_share)
      .def_ro("pss_bytes", &S::pss_bytes)
      .def_ro("arena_bytes", &S::arena_bytes)
      .def_ro("batches_held", &S::batches_held)
      .def_ro("private_copies", &S::private_copies)
      .def_ro("restarts", &S::restarts)
      .def_ro("skipped", &S::skipped)
      .def_ro("replaced", &S::replaced)
      .def_ro("faulty", &S::faulty)
      .def_ro("workers", &S::workers)
      .def_rw("staging", &S::staging, nb::arg("staging").none());
}

void add_forms(nb::class_<S>& cls) {
  cls.def_prop_ro("verdict", &S::verdict, "What bounds the pipeline, and the knob to turn.")
      .def(
          "to_json", [](const S& self) { return self.to_state().to_json(); }, "All but `faulty`, with the verdict.")
      .def_static(
          "from_json", [](const std::string& json) { return S::from_state(State::from_json(json)); }, nb::arg("json"))
      .def("__getstate__", [](const S& self) { return self.to_state().to_json(); })
      .def("__setstate__",
           [](S& self, const std::string& json) { new (&self) S(S::from_state(State::from_json(json))); })
      .def("__str__", &S::str);
}

}  // namespace

void bind_stats(nb::module_& module) {
  bind_worker_stats(module);
  bind_verdict(module);
  nb::class_<FaultySample>(module, "FaultySample")
      .def_ro("index", &FaultySample::index)
      .def_ro("replaced_by", &FaultySample::replaced_by)
      .def_ro("reason", &FaultySample::reason);
  bind_staging(module);
  nb::class_<S> stats(module, "LoaderStats", "Where the time and the memory of a Loader go. str() gives a table.");
  add_times(stats);
  add_workers_and_memory(stats);
  add_forms(stats);
}

}  // namespace infeed::python
