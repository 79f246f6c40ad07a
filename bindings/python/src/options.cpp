#include "infeed/loader/options.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string_view>
#include <utility>

#include "infeed/base/error.h"
#include "sampler.h"

namespace infeed::python {
namespace {

namespace nb = nanobind;

template <typename Enum, std::size_t count>
using Names = std::array<std::pair<std::string_view, Enum>, count>;

constexpr Names<WorkerKind, 5> kWorkerKinds = {{{"auto", WorkerKind::kAuto},
                                                {"inline", WorkerKind::kInline},
                                                {"thread", WorkerKind::kThread},
                                                {"fork", WorkerKind::kFork},
                                                {"spawn", WorkerKind::kSpawn}}};
constexpr Names<Filling, 3> kFillings = {
    {{"auto", Filling::kAuto}, {"cooperative", Filling::kCooperative}, {"whole", Filling::kWhole}}};
constexpr Names<OnError, 3> kOnErrors = {
    {{"raise", OnError::kRaise}, {"skip", OnError::kSkip}, {"replace", OnError::kReplace}}};

template <typename Enum, std::size_t count>
Enum parse(const char* option, const std::string& name, const Names<Enum, count>& names) {
  std::string known;
  for (const auto& [candidate, value] : names) {
    if (candidate == name) return value;
    known += (known.empty() ? "'" : ", '") + std::string(candidate) + "'";
  }
  throw ConfigError(std::string(option) + " is '" + name + "'; it can be " + known + ".");
}

}  // namespace

// Names and units are C++'s; infeed/loader.py has the defaults and the Python idioms.
void bind_options(nb::module_& module) {
  using O = LoaderOptions;
  nb::class_<O>(module, "LoaderOptions")
      .def(nb::init<>())
      .def_rw("batch_size", &O::batch_size)
      .def_rw("shuffle", &O::shuffle)
      .def_rw("drop_last", &O::drop_last)
      .def_rw("seed", &O::seed)
      .def_rw("num_workers", &O::num_workers)
      .def_rw("threads_per_worker", &O::threads_per_worker)
      .def_rw("prefetch", &O::prefetch)
      .def_rw("in_order", &O::in_order)
      .def_rw("stream_shards", &O::stream_shards)
      .def_rw("timeout_ms", &O::timeout_ms)
      .def_rw("start_timeout_ms", &O::start_timeout_ms)
      .def_rw("max_restarts", &O::max_restarts)
      .def_rw("worker_init_name", &O::worker_init_name)
      .def_rw("cpu_affinity", &O::cpu_affinity)
      .def_rw("worker_executable", &O::worker_executable)
      .def_rw("device", &O::device)
      .def_rw("prefetch_to_device", &O::prefetch_to_device)
      .def_rw("pin_memory", &O::pin_memory)
      .def_rw("memory_limit", &O::memory_limit)
      .def_rw("memory_budget", &O::memory_budget)
      .def_rw("extent_bytes", &O::extent_bytes)
      .def("set_auto_workers", [](O& self) { self.num_workers = kAutoWorkers; })
      .def("set_worker_kind",
           [](O& self, const std::string& name) { self.worker_kind = parse("worker_kind", name, kWorkerKinds); })
      .def("set_filling", [](O& self, const std::string& name) { self.filling = parse("filling", name, kFillings); })
      .def("set_on_error", [](O& self, const std::string& name) { self.on_error = parse("on_error", name, kOnErrors); })
      .def("set_sampler", [](O& self, SamplerHandle& sampler) { self.sampler = sampler.take(); })
      .def("set_batch_sampler", [](O& self, BatchSamplerHandle& sampler) { self.batch_sampler = sampler.take(); })
      .def("set_collate", [](O& self, const std::string& name, const std::string& params) {
        self.collate = make_collate(name, State::from_json(params));
      });
}

}  // namespace infeed::python
