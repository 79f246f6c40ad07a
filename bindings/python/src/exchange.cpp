#include "infeed/exchange/exchange.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "infeed/exchange/auto_count.h"
#include "lease.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

// --- Lease: the buffer protocol by hand ------------------------------------------------------------------------------

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  const Lease& lease = *nb::inst_ptr<Lease>(self);
  return PyBuffer_FillInfo(view, self, lease.bytes.data(), static_cast<Py_ssize_t>(lease.bytes.size()), 0, flags);
}

PyType_Slot lease_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)}, {0, nullptr}};

nb::object view_of(Lease lease) {
  const nb::object exporter = nb::cast(std::move(lease));
  return nb::steal(PyMemoryView_FromObject(exporter.ptr()));
}

// --- waiting: bounded sleeps without the GIL, signals between them ---------------------------------------------------

/// Time that is left of a `timeout` in seconds; none: no limit.
class Deadline {
 public:
  explicit Deadline(std::optional<double> seconds) {
    constexpr double kForever = 1e9;
    if (seconds && *seconds < kForever)
      end_ = Clock::now() + std::chrono::nanoseconds(static_cast<std::int64_t>(std::max(*seconds, 0.0) * 1e9));
  }
  /// Rounded up to a millisecond; -1: no limit.
  [[nodiscard]] int left_ms() const {
    if (!end_) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end_ - Clock::now()).count();
    return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> end_;
};

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

int wait(Exchange& self, const std::vector<std::uint64_t>& numbers, const std::vector<int>& death_fds,
         std::optional<double> timeout) {
  if (const auto ready = self.first_ready(numbers)) return static_cast<int>(*ready);
  const Deadline deadline(timeout);
  for (;;) {
    const int left = deadline.left_ms();
    ExchangeEvent event;
    {
      nb::gil_scoped_release unlocked;
      event = self.wait(numbers, death_fds, left);
    }
    if (event.kind == ExchangeEvent::Kind::kReady) return static_cast<int>(event.index);
    check_signals();
    if (event.kind == ExchangeEvent::Kind::kDeath) return -2 - static_cast<int>(event.index);
    if (left == 0) return -1;
  }
}

// --- tasks -----------------------------------------------------------------------------------------------------------

/// Exact ints alone: a bool or a NumPy integer must reach the dataset as what it is.
std::vector<std::int64_t> to_indices(const nb::list& task) {
  std::vector<std::int64_t> indices(nb::len(task));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    PyObject* const item = PyList_GET_ITEM(task.ptr(), static_cast<Py_ssize_t>(i));
    if (!PyLong_CheckExact(item)) throw nb::type_error("a task is a list of int, or bytes: pickle other indices.");
    indices[i] = PyLong_AsLongLong(item);
    if (indices[i] == -1 && PyErr_Occurred()) throw nb::python_error();
  }
  return indices;
}

void post(Exchange& self, std::uint64_t number, int worker, nb::handle task) {
  if (PyList_Check(task.ptr())) {
    self.post(number, worker, std::span<const std::int64_t>(to_indices(nb::borrow<nb::list>(task))));
  } else if (PyBytes_Check(task.ptr())) {
    const auto bytes = nb::borrow<nb::bytes>(task);
    self.post(number, worker, std::as_bytes(std::span(bytes.c_str(), bytes.size())));
  } else {
    throw nb::type_error("a task is a list of int, or bytes.");
  }
}

nb::object to_python(const ExchangeTask& task) {
  if (task.is_bytes) return nb::bytes(task.bytes.data(), task.bytes.size());
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(task.indices.size())));
  if (!list) throw nb::python_error();
  for (std::size_t i = 0; i < task.indices.size(); ++i) {
    PyObject* const item = PyLong_FromLongLong(task.indices[i]);
    if (item == nullptr) throw nb::python_error();
    PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), item);
  }
  return list;
}

nb::object claim(ExchangeWorker& self, double timeout) {
  const Deadline deadline(timeout);
  std::optional<ExchangeTask> task = self.claim(0);
  while (!task && !self.stopping()) {
    const int left = deadline.left_ms();
    if (left == 0) break;
    {
      nb::gil_scoped_release unlocked;
      task = self.claim(left);
    }
    if (!task) check_signals();
  }
  if (!task) return nb::none();
  return nb::make_tuple(task->number, to_python(*task));
}

// --- the handle on its way to a worker -------------------------------------------------------------------------------

void receive(ExchangeHandle* self, nb::handle arena, nb::handle ready, const ExchangeGeometry& geometry) {
  const int arena_fd = nb::cast<int>(arena.attr("detach")()), ready_fd = nb::cast<int>(ready.attr("detach")());
  new (self) ExchangeHandle(ExchangeHandle::adopt(arena_fd, ready_fd, geometry));
}

nb::object reduce(nb::handle self) {
  nb::module_::import_("multiprocessing.context").attr("assert_spawning")(self);
  const nb::object duplicate = nb::module_::import_("multiprocessing.reduction").attr("DupFd");
  const auto& handle = nb::cast<const ExchangeHandle&>(self);
  const ExchangeGeometry geometry = handle.geometry();
  return nb::make_tuple(
      nb::type<ExchangeHandle>(),
      nb::make_tuple(duplicate(handle.arena_fd()), duplicate(handle.ready_fd()), geometry.control_bytes,
                     geometry.extent_bytes, geometry.num_extents, geometry.spin_us, geometry.consumer_pid));
}

nb::dict stats(const Exchange& self) {
  const ExchangeStats now = self.stats();
  nb::list workers;
  for (const ExchangeStats::Worker& worker : now.workers) {
    if (worker.retired) continue;
    nb::dict row;
    row["pid"] = worker.pid;
    row["tasks"] = worker.tasks;
    row["busy_ns"] = worker.busy_ns;
    row["wait_ns"] = worker.wait_ns;
    workers.append(row);
  }
  nb::dict dict;
  dict["extents"] = now.extents;
  dict["extents_free"] = now.extents_free;
  dict["extents_in_use"] = now.extents - now.extents_free;
  dict["held"] = now.held;
  dict["held_bytes"] = now.held_bytes;
  dict["committed_bytes"] = now.committed_bytes;
  dict["waits"] = now.waits;
  dict["wait_seconds"] = static_cast<double>(now.wait_ns) * 1e-9;
  dict["workers"] = workers;
  return dict;
}

// --- the types -------------------------------------------------------------------------------------------------------

void bind_lease(nb::module_& module) {
  nb::class_<Lease>(module, "Lease", nb::type_slots(lease_slots), nb::is_final(),
                    "A message's bytes, writable through the buffer protocol.\n\n"
                    "The memory goes home when the Lease and every view of it are gone, on any thread, also after\n"
                    "its exchange.")
      .def_prop_ro("nbytes", [](const Lease& self) { return self.bytes.size(); })
      .def("__len__", [](const Lease& self) { return self.bytes.size(); });
}

void bind_handle(nb::module_& module) {
  nb::class_<ExchangeHandle>(module, "ExchangeHandle", nb::is_final(),
                             "What a worker needs to attach. Forked workers get it as it is; it is picklable only\n"
                             "while multiprocessing spawns a process.")
      .def(
          "__init__",
          [](ExchangeHandle* self, nb::handle arena, nb::handle ready, std::uint64_t control_bytes,
             std::uint64_t extent_bytes, int num_extents, int spin_us, std::int64_t consumer_pid) {
            receive(self, arena, ready, {control_bytes, extent_bytes, num_extents, spin_us, consumer_pid});
          },
          "For unpickling: two multiprocessing.reduction.DupFd, and the geometry.")
      .def("__reduce__", &reduce);
}

void bind_workers(nb::class_<Exchange>& consumer) {
  consumer
      .def(
          "bury", &Exchange::bury, nb::arg("worker"),
          "After `worker` is surely dead: its tasks wait for its replacement, what it had in hand of anyone's for any\n"
          "other. The numbers of the unfinished ones.")
      .def("retire", &Exchange::retire, nb::arg("worker"),
           "`worker` finishes the task in hand, sees port.stopping and leaves. Then call bury().")
      .def("recruit", &Exchange::recruit, nb::arg("worker"),
           "A worker of this id may work, as all may at first. Not before a retired one of that id has ended.")
      .def("sample_in_hand", &Exchange::sample_in_hand, nb::arg("worker"))
      .def("stop", &Exchange::stop, "The workers see port.stopping and leave.");
}

void bind_stats(nb::class_<Exchange>& consumer) {
  consumer.def("stats", &stats)
      .def("turn_began", &Exchange::turn_began)
      .def("turn_drew", &Exchange::turn_drew, nb::arg("ns"))
      .def("turn_ended", &Exchange::turn_ended, nb::arg("samples"))
      .def("loader_stats", &Exchange::loader_stats, nb::arg("prefetch_factor"));
}

void bind_consumer(nb::module_& module) {
  nb::class_<Exchange> consumer(
      module, "Exchange", nb::is_final(), nb::is_weak_referenceable(),
      "The consumer's end: tasks to workers, one message back for each. See docs/exchange.md.");
  consumer
      .def(
          "__init__",
          [](Exchange* self, int num_workers, int num_slots, std::uint64_t memory_limit, std::size_t extent_bytes,
             bool keep_memory) {
            new (self) Exchange({num_workers, num_slots, memory_limit, extent_bytes, keep_memory});
          },
          nb::arg("num_workers"), nb::arg("num_slots"), nb::arg("memory_limit") = 0, nb::arg("extent_bytes") = 0,
          nb::arg("keep_memory") = false)
      .def("handle", &Exchange::handle)
      .def("post", &post, nb::arg("number"), nb::arg("worker"), nb::arg("task"),
           "Gives `worker` a task: a list of int, or bytes; -1: whoever is free.\n\n"
           "Raises TypeError or OverflowError for anything but ints of 64 bits, RuntimeError where no slot is free.")
      .def("wait", &wait, nb::arg("numbers"), nb::arg("death_fds"), nb::arg("timeout").none(),
           "Waits, at most `timeout` seconds (None: for ever), until one of `numbers` is ready: its place in the "
           "list.\n\n"
           "-1: nothing within the time. -2 - i: death_fds[i] is readable, and no number is ready.")
      .def("ready", &Exchange::ready, nb::arg("number"))
      .def(
          "take",
          [](Exchange& self, std::uint64_t number) {
            ExchangeMessage message = self.take(number);
            return Lease{std::move(message.owner), message.bytes};
          },
          nb::arg("number"), "The message of a ready task. MemoryError where it would exceed memory_limit.")
      .def("cancel", &Exchange::cancel, nb::arg("number"), "Drops a task; its memory comes home by itself.")
      .def("close", &Exchange::close, nb::call_guard<nb::gil_scoped_release>(),
           "Stops, and lets go of the memory. Idempotent; leases stay valid.")
      .def_prop_ro("held", &Exchange::held)
      .def_prop_ro("max_task_words", &Exchange::max_task_words);
  bind_workers(consumer);
  bind_stats(consumer);
}

void bind_auto_count(nb::module_& module) {
  nb::class_<AutoCount>(module, "AutoCount", nb::is_final(),
                        "How many workers there should be, found while the trainer runs. See docs/tuning.md.")
      .def(
          "__init__",
          [](AutoCount* self, std::uint64_t memory_budget, double usable_cpus, int deepest) {
            new (self) AutoCount({memory_budget, usable_cpus, deepest});
          },
          nb::arg("memory_budget") = 0, nb::arg("usable_cpus") = 0, nb::arg("deepest") = 1)
      .def_prop_ro("workers", &AutoCount::workers)
      .def_prop_ro("most", &AutoCount::most)
      .def_prop_ro("times_deeper", &AutoCount::times_deeper, "As many tasks ahead as is usual for so many workers.")
      .def("turn_began", &AutoCount::turn_began)
      .def("turn_ended", &AutoCount::turn_ended, nb::arg("with_batch"), nb::arg("exchange"),
           "Why `workers` or `times_deeper` changed by this turn; None: they did not.")
      .def("refuse", &AutoCount::refuse, nb::arg("workers"), nb::arg("why"), "No more than so many could be had.")
      .def("closes", &AutoCount::closes, nb::arg("exchange"), "The exchange goes, another will follow.");
}

void bind_worker(nb::module_& module) {
  nb::class_<ExchangeWorker>(module, "WorkerPort", nb::is_final(),
                             "A worker's end. In another process than the consumer's it ends the process once the\n"
                             "consumer is dead.")
      .def(nb::init<const ExchangeHandle&, int>(), nb::arg("handle"), nb::arg("worker"))
      .def("claim", &claim, nb::arg("timeout"),
           nb::sig("def claim(self, timeout: float) -> tuple[int, list[int] | bytes] | None"),
           "The oldest task for this worker; None: none within `timeout` seconds, or stopping.")
      .def(
          "memory",
          [](const ExchangeWorker& self) {
            return view_of({std::const_pointer_cast<void>(self.mapping()), self.memory()});
          },
          nb::sig("def memory(self) -> memoryview"), "The claimed task's whole extent. Void after publish().")
      .def("note", &ExchangeWorker::note, nb::arg("index"))
      .def("publish", &ExchangeWorker::publish, nb::arg("nbytes"), nb::arg("collate_ns") = 0)
      .def_prop_ro("stopping", &ExchangeWorker::stopping, "The exchange stops, or this worker is retired: leave.")
      .def_prop_ro("worker", &ExchangeWorker::worker);
}

void bind_worker_fork(nb::module_& module) {
  struct Scope {
    std::optional<WorkerFork> fork;
  };
  nb::class_<Scope>(module, "WorkerFork", nb::is_final(),
                    "with WorkerFork(): processes that this thread forks are workers; messages held meanwhile are\n"
                    "reused later as if there had been no fork.")
      .def(nb::init<>())
      .def("__enter__", [](Scope& self) { self.fork.emplace(); })
      .def("__exit__", [](Scope& self, const nb::args&) { self.fork.reset(); });
}

}  // namespace

const Lease& lease_behind(nb::handle object) {
  const nb::handle exporter =
      PyMemoryView_Check(object.ptr()) ? nb::handle(PyMemoryView_GET_BUFFER(object.ptr())->obj) : object;
  if (!exporter.is_valid() || !nb::isinstance<Lease>(exporter))
    throw nb::type_error("this needs memory of an exchange: a Lease, or what WorkerPort.memory() gave.");
  return *nb::inst_ptr<Lease>(exporter);
}

void bind_exchange(nb::module_& module) {
  bind_lease(module);
  bind_handle(module);
  bind_consumer(module);
  bind_auto_count(module);
  bind_worker(module);
  bind_worker_fork(module);
}

}  // namespace infeed::python
