#include <algorithm>
#include <cstring>

#include "infeed/base/copy.h"
#include "leaf_copy.h"
#include "message.h"

namespace infeed::python {
namespace nb = nanobind;
namespace {

constexpr std::size_t kTableAlign = 8;

struct Copy {
  const std::byte* from;
  std::size_t nbytes;
  std::byte* to;
};

void copy_all(const std::vector<Copy>& copies) {
  std::size_t total = 0;
  for (const Copy& copy : copies) total += copy.nbytes;
  const auto run = [&] {
    for (const Copy& copy : copies) copy_bytes(copy.to, copy.from, copy.nbytes);
  };
  if (total < kUnlockBytes) return run();
  const nb::gil_scoped_release unlocked;  // the leaves are kept
  run();
}

std::span<const std::byte> bytes_of(const nb::bytes& bytes) {
  return std::as_bytes(std::span(bytes.c_str(), bytes.size()));
}

/// A plain function of C, since nanobind's cannot be pickled.
PyObject* leaf(PyObject*, PyObject* object) {
  Py_INCREF(object);
  return object;
}

template <typename T>
std::byte* append(std::byte* out, const T& value) {
  std::memcpy(out, &value, sizeof value);
  return out + sizeof value;
}

}  // namespace

/// Leaves that share memory keep sharing it: ranges that overlap are copied as one. What lies in the extent stays there.
void Message::place_leaves() {
  std::vector<Leaf*> outside;
  for (Leaf& leaf : leaves_) {
    const bool inside = leaf.data >= bytes_.data() && leaf.data < bytes_.data() + bytes_.size();
    leaf.offset = inside ? static_cast<std::size_t>(leaf.data - bytes_.data()) : kMessageAlign;
    if (!inside && leaf.span > 0) outside.push_back(&leaf);
  }
  std::ranges::sort(outside, {}, &Leaf::data);
  std::vector<Copy> copies;
  for (std::size_t i = 0; i < outside.size();) {
    const std::byte* const begin = outside[i]->data;
    const std::byte* end = begin;
    std::size_t next = i;
    for (; next < outside.size() && (next == i || outside[next]->data < end); ++next)
      end = std::max(end, outside[next]->data + outside[next]->span);
    const auto nbytes = static_cast<std::size_t>(end - begin);
    std::byte* const to = allocate(nbytes);
    if (to == nullptr) refuse_size(used_ + nbytes);
    copies.push_back({begin, nbytes, to});
    for (; i < next; ++i)
      outside[i]->offset = static_cast<std::size_t>(to - bytes_.data() + (outside[i]->data - begin));
  }
  copy_all(copies);
}

std::byte* Message::write_table(std::byte* out) const {
  for (const Leaf& leaf : leaves_) {
    out = append(out, LeafRecord{leaf.offset, leaf.kind, static_cast<std::uint8_t>(leaf.shape.size()), leaf.dtype.code,
                                 leaf.dtype.bits, leaf.dtype.lanes, 0});
    for (const std::int64_t dim : leaf.shape) out = append(out, dim);
    for (const std::int64_t step : leaf.strides) out = append(out, step);
  }
  return out;
}

std::size_t Message::write(std::int64_t tag, const nb::bytes& data, nb::handle extra) {
  place_leaves();
  const auto data_pickle = bytes_of(data);
  const auto extra_pickle = extra.is_none() ? std::span<const std::byte>() : bytes_of(nb::borrow<nb::bytes>(extra));
  std::size_t table_bytes = 0;
  for (const Leaf& leaf : leaves_) table_bytes += sizeof(LeafRecord) + 2 * sizeof(std::int64_t) * leaf.shape.size();
  MessageHeader header{kMessageMagic, 0, tag, 0, leaves_.size(), 0, 0, 0};
  header.table_offset = (used_ + kTableAlign - 1) / kTableAlign * kTableAlign;
  header.data_offset = header.table_offset + table_bytes;
  header.extra_offset = header.data_offset + data_pickle.size();
  header.nbytes = header.extra_offset + extra_pickle.size();
  if (header.nbytes > bytes_.size()) refuse_size(header.nbytes);
  std::byte* const out = write_table(bytes_.data() + header.table_offset);
  std::ranges::copy(data_pickle, out);
  std::ranges::copy(extra_pickle, out + data_pickle.size());
  header.checksum =
      checksum_of(bytes_.subspan(header.table_offset, header.nbytes - header.table_offset),
                  checksum_of(std::as_bytes(std::span(&header, 1)).subspan(offsetof(MessageHeader, tag))));
  std::memcpy(bytes_.data(), &header, sizeof header);
  leaves_.clear();
  return header.nbytes;
}

void bind_message(nb::module_& module) {
  nb::class_<Message>(module, "Message", "A reply that is being written into `memory`, a writable buffer.")
      .def(nb::init<nb::object>(), nb::arg("memory"))
      .def("fetch", &Message::fetch, nb::arg("dataset"), nb::arg("indices"), nb::arg("note").none() = nb::none(),
           "Collates dataset[i] for each index in place: None. A list of the samples where torch must collate them.")
      .def("gather", &Message::gather, nb::arg("samples"), "The same for a list of samples.")
      .def("stack", &Message::stack, nb::arg("batch"), "torch.stack(batch) in this memory, or None.")
      .def_rw("stacking", &Message::stacking, "Whether a collate function is running: else stack() returns None.")
      .def("collated_pickle", &Message::collated_pickle)
      .def("collated_value", &Message::collated_value)
      .def("add_tensor", &Message::add_tensor, nb::arg("tensor"))
      .def("add_array", &Message::add_array, nb::arg("array"))
      .def("add_buffer", &Message::add_buffer, nb::arg("buffer"))
      .def("drop_leaves", &Message::drop_leaves)
      .def("write", &Message::write, nb::arg("tag"), nb::arg("data"), nb::arg("extra").none());
  module.def("decode", &decode, nb::arg("lease"),
             "(tag, data, extra) of a message; its tensors and arrays are writable views of the lease's memory.");
  static PyMethodDef functions[] = {{"leaf", leaf, METH_O, "What pickles put around an out-of-band leaf: itself."},
                                    {nullptr, nullptr, 0, nullptr}};
  if (PyModule_AddFunctions(module.ptr(), functions) != 0) throw nb::python_error();
}

}  // namespace infeed::python
