#include <nanobind/nanobind.h>

#include "infeed/base/error.h"
#include "sampler.h"

namespace infeed::python {
namespace {

namespace nb = nanobind;

std::int64_t to_index(nb::handle value) {
  const nb::object index = nb::steal(PyNumber_Index(value.ptr()));  // NumPy's integers and 0-d tensors, too
  if (!index.is_valid()) nb::raise_python_error();
  const long long number = PyLong_AsLongLong(index.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) nb::raise_python_error();
  return number;
}

// An epoch of a Python iterable, item by item. Python objects are touched, and dropped, with the GIL only.
class Epochs {
 public:
  explicit Epochs(nb::object iterable) : iterable_(std::move(iterable)) {}
  ~Epochs() {
    if (!Py_IsInitialized()) {
      (void)iterable_.release();
      (void)iterator_.release();
      return;
    }
    const nb::gil_scoped_acquire locked;
    iterator_.reset();
    iterable_.reset();
  }
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;

  void start(std::uint64_t epoch) {
    const nb::gil_scoped_acquire locked;
    epoch_ = epoch;
    position_ = 0;
    if (nb::hasattr(iterable_, "set_epoch")) iterable_.attr("set_epoch")(epoch);
    iterator_ = nb::steal(PyObject_GetIter(iterable_.ptr()));
    if (!iterator_.is_valid()) nb::raise_python_error();
  }

  // The next item, invalid at the end. With the GIL.
  nb::object next() {
    if (!iterator_.is_valid()) return {};
    nb::object item = nb::steal(PyIter_Next(iterator_.ptr()));
    if (!item.is_valid() && PyErr_Occurred() != nullptr) nb::raise_python_error();
    if (!item.is_valid())
      iterator_.reset();
    else
      ++position_;
    return item;
  }

  [[nodiscard]] std::optional<std::int64_t> size() const {
    const nb::gil_scoped_acquire locked;
    const Py_ssize_t size = PyObject_Size(iterable_.ptr());
    if (size >= 0) return size;
    if (PyErr_ExceptionMatches(PyExc_TypeError) == 0 && PyErr_ExceptionMatches(PyExc_NotImplementedError) == 0)
      nb::raise_python_error();
    PyErr_Clear();  // it has none
    return std::nullopt;
  }

  void save(State& state, const char* type) const {
    state.set("type", type);
    state.set("epoch", epoch_);
    state.set("position", position_);
  }

  void load(const State& state, const char* type) {
    if (state.get_string("type") != type)
      throw StateError("the state is one of a " + state.get_string("type") + ", not of a Python iterable.");
    start(state.get_uint("epoch"));
    const nb::gil_scoped_acquire locked;
    const std::int64_t position = state.get_int("position");
    while (position_ < position && next().is_valid()) {
    }
  }

 private:
  nb::object iterable_, iterator_;
  std::uint64_t epoch_ = 0;
  std::int64_t position_ = 0;
};

class IterableSampler final : public Sampler {
 public:
  explicit IterableSampler(nb::object iterable) : epochs_(std::move(iterable)) {}

  void start_epoch(std::uint64_t epoch) override { epochs_.start(epoch); }
  std::size_t next(std::span<std::int64_t> indices) override {
    const nb::gil_scoped_acquire locked;
    std::size_t count = 0;
    while (count < indices.size()) {
      const nb::object item = epochs_.next();
      if (!item.is_valid()) break;
      indices[count++] = to_index(item);
    }
    return count;
  }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return epochs_.size(); }
  void save(State& state) const override { epochs_.save(state, "IterableSampler"); }
  void load(const State& state) override { epochs_.load(state, "IterableSampler"); }

 private:
  Epochs epochs_;
};

class IterableBatchSampler final : public BatchSampler {
 public:
  IterableBatchSampler(nb::object iterable, std::int64_t max_batch_size)
      : epochs_(std::move(iterable)), max_batch_size_(max_batch_size) {}

  void start_epoch(std::uint64_t epoch) override { epochs_.start(epoch); }
  bool next(std::vector<std::int64_t>& indices) override {
    const nb::gil_scoped_acquire locked;
    const nb::object batch = epochs_.next();
    if (!batch.is_valid()) return false;
    indices.clear();
    for (const nb::handle index : batch) indices.push_back(to_index(index));
    return true;
  }
  [[nodiscard]] std::int64_t max_batch_size() const override { return max_batch_size_; }
  [[nodiscard]] std::optional<std::int64_t> size() const override { return epochs_.size(); }
  void save(State& state) const override { epochs_.save(state, "IterableBatchSampler"); }
  void load(const State& state) override { epochs_.load(state, "IterableBatchSampler"); }

 private:
  Epochs epochs_;
  std::int64_t max_batch_size_;
};

}  // namespace

std::unique_ptr<Sampler> sampler_of_iterable(nb::object iterable) {
  return std::make_unique<IterableSampler>(std::move(iterable));
}

std::unique_ptr<BatchSampler> batch_sampler_of_iterable(nb::object iterable, std::int64_t max_batch_size) {
  return std::make_unique<IterableBatchSampler>(std::move(iterable), max_batch_size);
}

}  // namespace infeed::python
