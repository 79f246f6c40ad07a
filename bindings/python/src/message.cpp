#include "message.h"

#include <algorithm>
#include <utility>

#include "lease.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

std::size_t aligned(std::size_t bytes) { return (bytes + kMessageAlign - 1) / kMessageAlign * kMessageAlign; }

// --- the samples of a dataset ----------------------------------------------------------------------------------------

/// dataset[index], without the detour over the type's slot where __getitem__ is a plain function.
class Getter {
 public:
  explicit Getter(nb::handle dataset) : dataset_(dataset) {
    PyObject* const function =
        PyObject_GetAttrString(reinterpret_cast<PyObject*>(Py_TYPE(dataset.ptr())), "__getitem__");
    if (function == nullptr) PyErr_Clear();  // PyObject_GetItem says it better
    function_ = nb::steal(function);
    if (function != nullptr && !PyFunction_Check(function)) function_.reset();
  }
  [[nodiscard]] nb::object operator()(PyObject* index) const {
    PyObject* const arguments[] = {nullptr, dataset_.ptr(), index};
    PyObject* const sample = function_.is_valid() ? PyObject_Vectorcall(function_.ptr(), arguments + 1,
                                                                        2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr)
                                                  : PyObject_GetItem(dataset_.ptr(), index);
    if (sample == nullptr) throw nb::python_error();
    return nb::steal(sample);
  }

 private:
  nb::handle dataset_;
  nb::object function_;
};

/// Says which sample is in hand; straight to the port where `note` is a port's method.
class Note {
 public:
  explicit Note(nb::handle note) : note_(note) {
    if (note.is_none()) return;
    const nb::object self = nb::getattr(note, "__self__", nb::none());
    if (nb::isinstance<ExchangeWorker>(self)) port_ = &worker_of(self);
  }
  void operator()(PyObject* index) const {
    if (note_.is_none() || !PyLong_CheckExact(index)) return;
    if (port_ == nullptr) return static_cast<void>(note_(nb::handle(index)));
    int overflow = 0;
    const std::int64_t value = PyLong_AsLongLongAndOverflow(index, &overflow);
    if (overflow == 0) port_->note(value);
  }

 private:
  nb::handle note_;
  ExchangeWorker* port_ = nullptr;
};

// --- torch's map of collate functions --------------------------------------------------------------------------------

/// What default_collate_fn_map held when the plan at hand was learnt.
class CollateMap {
 public:
  [[nodiscard]] bool unchanged() const {
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    std::size_t i = 0;
    const nb::object map = current();
    if (!map.is_valid()) return entries_.empty();
    while (PyDict_Next(map.ptr(), &position, &key, &value)) {
      if (i == entries_.size() || entries_[i].first.ptr() != key || entries_[i].second.ptr() != value) return false;
      ++i;
    }
    return i == entries_.size();
  }
  /// Remembers the map; false: for one of `types` it names another function than torch does.
  [[nodiscard]] bool allows(const std::vector<nb::object>& types) {
    entries_.clear();
    const nb::object map = current();
    if (!map.is_valid()) return true;
    for (const auto& [key, value] : nb::borrow<nb::dict>(map))
      entries_.emplace_back(nb::borrow(key), nb::borrow(value));
    nb::list list;
    for (const nb::object& type : types) list.append(type);
    return nb::cast<bool>(nb::module_::import_("infeed._codec").attr("map_is_standard")(list));
  }

 private:
  static nb::object current() {
    PyObject* const module = PyDict_GetItemString(PyImport_GetModuleDict(), "torch.utils.data._utils.collate");
    if (module == nullptr) return {};
    const nb::object map = nb::getattr(module, "default_collate_fn_map", nb::none());
    return PyDict_CheckExact(map.ptr()) ? map : nb::object();
  }
  std::vector<std::pair<nb::object, nb::object>> entries_;
};

/// The last batch's plan, for the next message; and the map that it was learnt by. Lives as long as the process.
struct Learnt {
  std::unique_ptr<Plan> plan;
  CollateMap map;
};
Learnt& learnt() {
  static auto* const kept = new Learnt;
  return *kept;
}

}  // namespace

Message::Message(nb::object memory) : memory_(std::move(memory)) {
  if (PyObject_GetBuffer(memory_.ptr(), &buffer_, PyBUF_WRITABLE) != 0) throw nb::python_error();
  bytes_ = {static_cast<std::byte*>(buffer_.buf), static_cast<std::size_t>(buffer_.len)};
  if (bytes_.size() < kMessageAlign) {
    PyBuffer_Release(&buffer_);
    refuse_size(kMessageAlign);
  }
}

Message::~Message() {
  if (plan_) {
    plan_->clear();
    learnt().plan = std::move(plan_);
  }
  leaves_.clear();
  for (const nb::object& reference : stacked_) {  // the user kept it: from now on in memory of its own
    const nb::object tensor = reference();
    if (tensor.is_none()) continue;
    try {
      nb::module_::import_("infeed._codec").attr("move_out")(tensor);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("infeed._native.Message");
    }
  }
  PyBuffer_Release(&buffer_);
}

void Message::refuse_size(std::size_t needed) const {
  PyErr_Format(
      PyExc_MemoryError,
      "a batch of %zu bytes is larger than the memory for one (%zu bytes). Lower batch_size, or let collate_fn "
      "return less.",
      needed, bytes_.size());
  throw nb::python_error();
}

std::byte* Message::allocate(std::size_t bytes) {
  const std::size_t begin = aligned(used_);
  if (begin > bytes_.size() || bytes > bytes_.size() - begin) return nullptr;
  used_ = begin + bytes;
  return bytes_.data() + begin;
}

// --- collating in place ----------------------------------------------------------------------------------------------

bool Message::place(nb::handle first, std::size_t count) {
  const std::size_t used = used_;
  std::byte* const memory = allocate(plan_->bytes(count));
  if (memory == nullptr) return false;
  plan_->place(memory, count);
  if (plan_->put(first, 0)) return true;
  used_ = used;
  return false;
}

bool Message::begin(nb::handle first, std::size_t count) {
  if (!plan_) plan_ = std::move(learnt().plan);
  if (plan_ && learnt().map.unchanged() && plan_->begins(first) && place(first, count)) return true;
  plan_ = Plan::learn(first);
  if (plan_ && learnt().map.allows(plan_->types()) && place(first, count)) return true;
  plan_.reset();
  return false;
}

nb::object Message::rebuilt(std::size_t rows) {
  nb::list samples;
  for (std::size_t row = 0; row < rows; ++row) samples.append(plan_->rebuild(row));
  plan_->clear();
  used_ = kMessageAlign;
  return samples;
}

template <typename NextSample>
nb::object Message::collect(std::size_t count, const NextSample& next) {
  nb::object samples;  // once there is an odd one
  used_ = kMessageAlign;
  for (std::size_t row = 0; row < count; ++row) {
    const nb::object sample = next(row);
    if (!samples.is_valid()) {
      if (row == 0 ? begin(sample, count) : plan_->put(sample, row)) continue;
      samples = row == 0 ? nb::list() : rebuilt(row);
    }
    nb::borrow<nb::list>(samples).append(sample);
  }
  if (count == 0) samples = nb::list();
  rows_ = samples.is_valid() ? 0 : count;
  return samples.is_valid() ? samples : nb::none();
}

nb::object Message::fetch(nb::handle dataset, nb::handle indices, nb::handle note) {
  const Getter get(dataset);
  const Note tell(note);
  const nb::object list = nb::steal(PySequence_Fast(indices.ptr(), "indices must be a sequence."));
  if (!list.is_valid()) throw nb::python_error();
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(list.ptr()));
  return collect(count, [&](std::size_t row) {
    const nb::object index = list[row];
    tell(index.ptr());
    return get(index.ptr());
  });
}

nb::object Message::gather(const nb::list& samples) {
  const nb::object collated = collect(nb::len(samples), [&](std::size_t row) { return nb::object(samples[row]); });
  return collated.is_none() ? collated : nb::object(samples);
}

std::vector<std::int64_t> Message::batch_shape(const PlanNode& leaf) const {
  std::vector<std::int64_t> shape{static_cast<std::int64_t>(rows_)};
  shape.insert(shape.end(), leaf.shape.begin(), leaf.shape.end());
  return shape;
}

void Message::add_collated(const PlanNode& leaf) {
  Leaf& added = leaves_.emplace_back(Leaf{LeafKind::kTensor, leaf.dtype, batch_shape(leaf), {}, leaf.rows, 0, {}});
  added.strides = contiguous_strides(added.shape);
  added.span = rows_ * leaf.sample_bytes;
}

nb::object Message::collated_pickle() {
  if (!plan_ || rows_ == 0) throw nb::value_error("nothing was collated in place.");
  if (plan_->needs_values()) return nb::none();
  nb::object pickle = plan_->pickle;
  if (!pickle.is_valid()) {
    nb::list placeholders, seen;
    const auto make = [&](const PlanNode&) {
      placeholders.append(nb::steal(PyPickleBuffer_FromObject(nb::steal(PyByteArray_FromStringAndSize("", 0)).ptr())));
      return nb::object(placeholders[nb::len(placeholders) - 1]);
    };
    const nb::object batch = plan_->collated(make);
    pickle = nb::module_::import_("pickle").attr("dumps")(batch, 5, nb::arg("buffer_callback") = seen.attr("append"));
    plan_->order.clear();
    for (const nb::handle buffer : seen)
      for (std::size_t i = 0; i < plan_->num_leaves(); ++i)
        if (buffer.is(placeholders[i])) plan_->order.push_back(plan_->leaves()[i]);
    if (plan_->constant()) plan_->pickle = pickle;
  }
  for (const PlanNode* leaf : plan_->order) add_collated(*leaf);
  return pickle;
}

nb::object Message::collated_value() {
  if (!plan_ || rows_ == 0) throw nb::value_error("nothing was collated in place.");
  const Torch* const torch = Torch::loaded();
  const OwnerScope owner(memory_);
  return plan_->collated([&](const PlanNode& leaf) {
    const auto shape = batch_shape(leaf);
    const auto strides = contiguous_strides(shape);
    return torch->make(leaf.rows, {leaf.dtype, shape, strides}, *owner);
  });
}

// --- torch.stack in the extent ---------------------------------------------------------------------------------------

nb::object Message::stack(nb::handle batch) {
  const Torch* const torch = Torch::loaded();
  if (!stacking || torch == nullptr || !(PyList_CheckExact(batch.ptr()) || PyTuple_CheckExact(batch.ptr())))
    return nb::none();
  const nb::tuple tensors(nb::borrow(batch));
  const std::size_t count = nb::len(tensors);
  LeafView first, view;
  for (std::size_t row = 0; row < count; ++row) {
    PyObject* const tensor = PyTuple_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(row));
    if (!torch->is_tensor(tensor) || (row == 0 && !torch->is_dense(tensor)) ||
        !torch->borrow(tensor, row == 0 ? first : view))
      return nb::none();
    if (row > 0 && (!same(view.dtype, first.dtype) || !std::ranges::equal(view.dims(), first.dims())))
      return nb::none();
    if (!torch->is_plain(tensor, first.dtype)) return nb::none();
  }
  std::byte* const rows = count == 0 ? nullptr : allocate(count * first.nbytes());
  if (rows == nullptr) return nb::none();
  nb::object result = [&] {
    std::vector<std::int64_t> shape{static_cast<std::int64_t>(count)};
    shape.insert(shape.end(), first.shape, first.shape + first.ndim);
    const OwnerScope owner(memory_);
    return torch->make(rows, {first.dtype, shape, contiguous_strides(shape)}, *owner);
  }();
  for (std::size_t row = 0; row < count; ++row) {
    if (!torch->borrow(PyTuple_GET_ITEM(tensors.ptr(), static_cast<Py_ssize_t>(row)), view) ||
        view.nbytes() != first.nbytes())
      return nb::none();
    view.copy_to(rows + row * first.nbytes());
  }
  stacked_.push_back(nb::steal(PyWeakref_NewRef(result.ptr(), nullptr)));
  return result;
}

// --- leaves of a pickle ----------------------------------------------------------------------------------------------

void Message::add_view(LeafKind kind, const LeafView& view, nb::object keep) {
  Leaf& leaf = leaves_.emplace_back(
      Leaf{kind, view.dtype, {view.shape, view.shape + view.ndim}, {}, view.data, view.span_bytes(), std::move(keep)});
  const auto item = static_cast<std::int64_t>(item_bytes(view.dtype));
  for (const std::int64_t step : view.steps()) leaf.strides.push_back(step / item);
}

bool Message::add_tensor(nb::object tensor) {
  LeafView view;
  const Torch* const torch = Torch::loaded();
  if (torch == nullptr || !torch->is_dense(tensor.ptr()) || !torch->borrow(tensor.ptr(), view)) return false;
  add_view(LeafKind::kTensor, view, std::move(tensor));
  return true;
}

bool Message::add_array(nb::object array) {
  LeafView view;
  const NumPy* const numpy = NumPy::loaded();
  if (numpy == nullptr || !numpy->is_array(array.ptr())) return false;
  const auto dtype = numpy->dtype_of(array.ptr());
  if (!dtype || !numpy->borrow(array.ptr(), *dtype, view)) return false;
  const auto item = static_cast<std::int64_t>(item_bytes(*dtype));
  for (const std::int64_t step : view.steps())
    if (step < 0 || step % item != 0) return false;
  add_view(LeafKind::kArray, view, std::move(array));
  return true;
}

void Message::add_buffer(const nb::object& buffer) {
  const nb::object view = nb::steal(PyMemoryView_FromObject(buffer.ptr()));
  if (!view.is_valid()) throw nb::python_error();
  const Py_buffer& bytes = *PyMemoryView_GET_BUFFER(view.ptr());
  if (!PyBuffer_IsContiguous(&bytes, 'A')) throw nb::buffer_error("an out-of-band buffer must be contiguous.");
  const auto size = static_cast<std::size_t>(bytes.len);
  leaves_.push_back(
      Leaf{LeafKind::kBuffer, {1, 8, 1}, {bytes.len}, {1}, static_cast<std::byte*>(bytes.buf), size, view});
}

}  // namespace infeed::python
