#include "infeed/loader/stats.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

namespace infeed::python {

namespace nb = nanobind;

void bind_stats(nb::module_& module) {
  nb::class_<WorkerStats>(module, "WorkerStats")
      .def_ro("id", &WorkerStats::id)
      .def_ro("pid", &WorkerStats::pid)
      .def_ro("samples", &WorkerStats::samples)
      .def_ro("busy_s", &WorkerStats::busy_s)
      .def_ro("wait_s", &WorkerStats::wait_s)
      .def_ro("restarts", &WorkerStats::restarts);
  nb::class_<FaultySample>(module, "FaultySample")
      .def_ro("index", &FaultySample::index)
      .def_ro("replaced_by", &FaultySample::replaced_by)
      .def_ro("reason", &FaultySample::reason);
  using S = LoaderStats;
  nb::class_<S>(module, "LoaderStats", "Where the time and the memory of a Loader go. str() gives a table.")
      .def_ro("batches", &S::batches)
      .def_ro("samples", &S::samples)
      .def_ro("elapsed_s", &S::elapsed_s)
      .def_ro("samples_per_s", &S::samples_per_s)
      .def_ro("first_batch_ms", &S::first_batch_ms)
      .def_ro("starved_share", &S::starved_share)
      .def_ro("blocked_share", &S::blocked_share)
      .def_ro("read_us", &S::read_us)
      .def_ro("decode_us", &S::decode_us)
      .def_ro("transform_us", &S::transform_us)
      .def_ro("other_us", &S::other_us)
      .def_ro("bytes_read", &S::bytes_read)
      .def_ro("pss_bytes", &S::pss_bytes)
      .def_ro("arena_bytes", &S::arena_bytes)
      .def_ro("batches_held", &S::batches_held)
      .def_ro("private_copies", &S::private_copies)
      .def_ro("restarts", &S::restarts)
      .def_ro("skipped", &S::skipped)
      .def_ro("replaced", &S::replaced)
      .def_ro("faulty", &S::faulty)
      .def_ro("workers", &S::workers)
      .def("__str__", &S::str);
}

}  // namespace infeed::python
