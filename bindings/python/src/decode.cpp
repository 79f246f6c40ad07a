#include <cstring>
#include <limits>

#include "message.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

[[noreturn]] void refuse(const char* what) {
  PyErr_Format(PyExc_ValueError, "these bytes are no message of a worker: %s.", what);
  throw nb::python_error();
}

/// Walks over the leaf table.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T next() {
    if (bytes_.size() < sizeof(T)) refuse("the leaf table is cut off");
    T value;
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
};

struct Source {
  nb::object view;  // memoryview of the whole message
  std::span<std::byte> bytes;
  MessageHeader header;
};

void check(const Source& source) {
  const MessageHeader& header = source.header;
  if (header.magic != kMessageMagic) refuse("the first bytes are not its mark");
  if (header.nbytes != source.bytes.size()) refuse("its length is another");
  const bool ordered = sizeof(MessageHeader) <= header.table_offset && header.table_offset <= header.data_offset &&
                       header.data_offset <= header.extra_offset && header.extra_offset <= header.nbytes;
  if (!ordered) refuse("its parts are out of order");
  const auto fields =
      source.bytes.subspan(offsetof(MessageHeader, tag), sizeof(MessageHeader) - offsetof(MessageHeader, tag));
  if (header.checksum != checksum_of(source.bytes.subspan(header.table_offset), checksum_of(fields)))
    refuse("the checksum is wrong");
  if (header.num_leaves > (header.data_offset - header.table_offset) / sizeof(LeafRecord)) refuse("too many leaves");
}

/// Bytes from the first to the last element, or throws.
std::size_t span_of(const LeafRecord& record, std::span<const std::int64_t> shape,
                    std::span<const std::int64_t> strides) {
  __extension__ using Wide = unsigned __int128;
  constexpr auto kMost = static_cast<Wide>(std::numeric_limits<std::int64_t>::max());
  Wide items = 1, last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0 || strides[d] < 0) refuse("a leaf has negative sizes");
    items *= static_cast<Wide>(shape[d]);
    if (shape[d] > 0) last += static_cast<Wide>(shape[d] - 1) * static_cast<Wide>(strides[d]);
    if (items > kMost || last > kMost) refuse("a leaf is too large");
  }
  if (items == 0) return 0;
  const std::size_t item = item_bytes({record.dtype_code, record.dtype_bits, record.dtype_lanes});
  if (item == 0 || (last + 1) * item > kMost) refuse("a leaf is too large");
  return static_cast<std::size_t>((last + 1) * item);
}

nb::object slice(nb::handle view, std::size_t from, std::size_t count) {
  const nb::object range = nb::steal(PySlice_New(nb::int_(from).ptr(), nb::int_(from + count).ptr(), nullptr));
  return view[range];
}

nb::object make_leaf(const Source& source, Owner& owner, Reader& reader) {
  const auto record = reader.next<LeafRecord>();
  if (record.ndim > kMaxDims) refuse("a leaf has too many dimensions");
  std::int64_t shape[kMaxDims], strides[kMaxDims];
  for (int d = 0; d < record.ndim; ++d) shape[d] = reader.next<std::int64_t>();
  for (int d = 0; d < record.ndim; ++d) strides[d] = reader.next<std::int64_t>();
  const LeafShape leaf{
      {record.dtype_code, record.dtype_bits, record.dtype_lanes}, {shape, record.ndim}, {strides, record.ndim}};
  const std::size_t span = span_of(record, leaf.shape, leaf.strides);
  if (record.offset > source.header.table_offset || span > source.header.table_offset - record.offset)
    refuse("a leaf lies outside");
  std::byte* const data = source.bytes.data() + record.offset;
  if (record.kind == LeafKind::kBuffer) return slice(source.view, record.offset, span);
  if (record.kind == LeafKind::kTensor)
    if (const Torch* torch = Torch::loaded()) return torch->make(data, leaf, owner);
  if (record.kind != LeafKind::kTensor && record.kind != LeafKind::kArray) refuse("a leaf is of no known kind");
  const NumPy* const numpy = NumPy::loaded();
  if (numpy == nullptr) {
    PyErr_SetString(PyExc_ImportError, "this batch has arrays: import numpy or torch where it is read.");
    throw nb::python_error();
  }
  return numpy->make(data, leaf, source.view);
}

nb::object leaves_of(const Source& source) {
  const auto count = source.header.num_leaves;
  const nb::object leaves = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(count)));
  if (!leaves.is_valid()) throw nb::python_error();
  const OwnerScope owner(source.view);
  Reader reader(
      source.bytes.subspan(source.header.table_offset, source.header.data_offset - source.header.table_offset));
  for (std::size_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(leaves.ptr(), static_cast<Py_ssize_t>(i), make_leaf(source, *owner, reader).release().ptr());
  return nb::steal(PyObject_GetIter(leaves.ptr()));
}

nb::object unpickle(std::span<std::byte> pickle, nb::handle leaves) {
  static PyObject* const loads = nb::object(nb::module_::import_("pickle").attr("loads")).release().ptr();
  static PyObject* const names = nb::make_tuple("buffers").release().ptr();
  const nb::object bytes = nb::steal(PyMemoryView_FromMemory(reinterpret_cast<char*>(pickle.data()),
                                                             static_cast<Py_ssize_t>(pickle.size()), PyBUF_READ));
  PyObject* const arguments[] = {bytes.ptr(), leaves.ptr()};
  PyObject* const object = PyObject_Vectorcall(loads, arguments, 1, names);
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

}  // namespace

std::uint64_t checksum_of(std::span<const std::byte> bytes, std::uint64_t seed) noexcept {
  std::uint64_t sum = seed ^ bytes.size();
  while (!bytes.empty()) {
    const std::size_t count = std::min<std::size_t>(bytes.size(), 8);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), count);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15;  // each step is a bijection of sum and of word
    sum ^= sum >> 29;
    bytes = bytes.subspan(count);
  }
  return sum;
}

nb::tuple decode(const nb::object& lease) {
  Source source;
  source.view = nb::steal(PyMemoryView_FromObject(lease.ptr()));
  if (!source.view.is_valid()) throw nb::python_error();
  const Py_buffer& buffer = *PyMemoryView_GET_BUFFER(source.view.ptr());
  if (buffer.readonly || !PyBuffer_IsContiguous(&buffer, 'C')) refuse("the memory is not writable and contiguous");
  source.bytes = {static_cast<std::byte*>(buffer.buf), static_cast<std::size_t>(buffer.len)};
  if (source.bytes.size() < sizeof(MessageHeader)) refuse("there are too few");
  std::memcpy(&source.header, source.bytes.data(), sizeof(MessageHeader));
  check(source);
  const MessageHeader& header = source.header;
  const nb::object leaves = leaves_of(source);
  const nb::object data =
      unpickle(source.bytes.subspan(header.data_offset, header.extra_offset - header.data_offset), leaves);
  const nb::object extra =
      header.extra_offset == header.nbytes ? nb::none() : unpickle(source.bytes.subspan(header.extra_offset), leaves);
  return nb::make_tuple(header.tag, data, extra);
}

}  // namespace infeed::python
