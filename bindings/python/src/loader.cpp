#include "loader.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "dataset.h"
#include "infeed/base/error.h"
#include "infeed/loader/stager.h"

namespace infeed::python {
namespace {

using Unlocked = nb::gil_scoped_release;

constexpr std::chrono::seconds kLongestGoodbye{5};
thread_local int t_inside = 0;  // calls of next() on this thread's stack

// Python's signal handlers run on the main thread only, and only when they are asked to.
void look_at_signals() {
  const nb::gil_scoped_acquire locked;
  if (PyErr_CheckSignals() != 0) nb::raise_python_error();
}

struct BatchIterator {
  nb::object loader;  ///< a PythonLoader
  std::uint64_t number = 0;
  bool begun = false;
  bool ended = false;
};

nb::object next_batch(BatchIterator& self) {
  if (self.ended) throw nb::stop_iteration();
  auto& loader = nb::cast<PythonLoader&>(self.loader);
  std::optional<nb::object> batch = loader.next(self.number, !std::exchange(self.begun, true));
  self.ended = !batch;
  if (!batch) throw nb::stop_iteration();
  return std::move(*batch);
}

BatchIterator iterate(const nb::object& self) {
  auto& loader = nb::cast<PythonLoader&>(self);
  (void)loader.open();
  return {self, loader.new_iterator()};
}

// Forwards to the engine's loader without the GIL, under which another thread's next() may need it.
template <auto method, typename... Arguments>
auto forward(const PythonLoader& self, Arguments... arguments) {
  const std::shared_ptr<Loader> loader = self.open();
  const Unlocked unlocked;
  return ((*loader).*method)(arguments...);
}

void make_loader(PythonLoader* self, nb::object source, LoaderOptions& options, const std::string& output,
                 nb::object batch_type) {
  new (self)
      PythonLoader(std::move(source), std::move(options), BatchFactory(output_from(output), std::move(batch_type)));
}

// A simulated device's memory is the host's: once their copies are done, its arrays are anybody's. (Batches for CUDA
// stay on the host here; infeed.torch copies them into torch's memory.)
Batch for_host(const Batch& staged, Stager& stager) {
  stager.compute_stream().synchronize();
  std::vector<NamedArray> arrays = staged.arrays();
  for (NamedArray& named : arrays) named.array.device = {};
  return {std::move(arrays), staged.indices(), staged.epoch(), staged.number(), staged.owner()};
}

const Schema& schema_of(nb::handle source) {
  if (nb::isinstance<StreamHandle>(source)) return nb::cast<StreamHandle&>(source).stream->schema();
  return nb::cast<DatasetHandle&>(source).dataset->schema();
}

}  // namespace

PythonLoader::PythonLoader(nb::object source, LoaderOptions options, BatchFactory batches)
    : source_(std::move(source)), batches_(std::move(batches)), closing_(std::make_shared<std::atomic<bool>>(false)) {
  for (const Field& field : schema_of(source_).fields()) batches_.arrays().check(field.name, field.dtype);
  options.on_wait = [closing = closing_] {
    if (*closing) throw WorkerError("the loader was closed while next() waited.");
    look_at_signals();
  };
  const Dataset* dataset = nullptr;
  const Stream* stream = nullptr;
  if (nb::isinstance<StreamHandle>(source_))
    stream = nb::cast<StreamHandle&>(source_).stream.get();
  else
    dataset = nb::cast<DatasetHandle&>(source_).dataset.get();
  const Unlocked unlocked;
  loader_ = stream != nullptr ? std::make_shared<Loader>(*stream, std::move(options))
                              : std::make_shared<Loader>(*dataset, std::move(options));
}

void PythonLoader::close() noexcept {
  *closing_ = true;
  const Unlocked unlocked;
  wait_until_idle();
  std::shared_ptr<Loader> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(loader_);
  }
}

// Not for a signal handler, or a sampler, that closes the loader in whose next() it runs.
void PythonLoader::wait_until_idle() noexcept {
  if (t_inside > 0) return;
  std::unique_lock lock(mutex_);
  idle_.wait_for(lock, kLongestGoodbye, [this] { return inside_ == 0; });
}

PythonLoader::Inside::Inside(PythonLoader& loader) : loader_(loader) {
  ++t_inside;
  const std::lock_guard lock(loader_.mutex_);
  ++loader_.inside_;
}

PythonLoader::Inside::~Inside() {
  --t_inside;
  const std::lock_guard lock(loader_.mutex_);
  --loader_.inside_;
  loader_.idle_.notify_all();
}

std::shared_ptr<Loader> PythonLoader::open() const {
  const std::lock_guard lock(mutex_);
  if (!loader_)
    throw ConfigError(
        "this loader was closed: by close(), at the end of `with`, or at exit. Make a new one; stats() are there until "
        "then.");
  return loader_;
}

std::optional<nb::object> PythonLoader::next(std::uint64_t number, bool first) {
  if (number != iterators_)
    throw ConfigError(
        "a newer iterator of this loader took over. A loader gives one epoch at a time: make another "
        "loader to iterate twice at once.");
  const Inside inside(*this);
  std::optional<Batch> batch;
  {
    std::shared_ptr<Loader> loader = open();
    const Unlocked unlocked;
    batch = draw(*loader, first);
    if (batch && loader->stager() != nullptr) batch = for_host(*batch, *loader->stager());
    loader.reset();  // without the GIL, where close() left the last hold to us
  }
  if (!batch) return std::nullopt;
  return batches_.make(*batch);
}

std::optional<Batch> PythonLoader::draw(Loader& loader, bool first) {
  if (!first) return loader.next();
  Loader::Iterator begin = loader.begin();
  if (begin == loader.end()) return std::nullopt;
  return std::move(*begin);
}

void bind_loader(nb::module_& module) {
  nb::class_<BatchIterator>(module, "BatchIterator")
      .def("__iter__", [](nb::handle self) { return self; })
      .def("__next__", next_batch);
  nb::class_<PythonLoader>(module, "Loader")
      .def("__init__", make_loader)
      .def("__iter__", iterate)
      .def("close", &PythonLoader::close)
      .def("size", forward<&Loader::size>)
      .def("epoch", forward<&Loader::epoch>)
      .def("reset", forward<&Loader::reset>)
      .def("set_epoch", forward<&Loader::set_epoch, std::uint64_t>)
      .def("num_workers", forward<&Loader::num_workers>)
      .def("set_num_workers", forward<&Loader::set_num_workers, int>)
      .def("keep_memory_warm", forward<&Loader::keep_memory_warm>)
      .def("stats", forward<&Loader::stats>)
      .def("reset_stats", forward<&Loader::reset_stats>)
      .def("state_dict", [](const PythonLoader& self) { return forward<&Loader::state_dict>(self).to_json(); })
      .def("load_state_dict", [](const PythonLoader& self, const std::string& json) {
        const State state = State::from_json(json);
        const std::shared_ptr<Loader> loader = self.open();
        const Unlocked unlocked;
        loader->load_state_dict(state);
      });
}

}  // namespace infeed::python
