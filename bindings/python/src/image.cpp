#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <new>
#include <vector>

#include "array.h"
#include "infeed/base/error.h"
#include "infeed/dataset/decode_images.h"

namespace infeed::python {
namespace {

constexpr std::align_val_t kAlign{64};

// Memory of one array; freed by the last view.
std::shared_ptr<std::byte> memory_for(const Shape& shape, DType dtype) {
  const std::size_t nbytes = static_cast<std::size_t>(shape.numel()) * itemsize(dtype);
  return {static_cast<std::byte*>(::operator new[](nbytes, kAlign)),
          [](std::byte* bytes) { ::operator delete[](bytes, kAlign); }};
}

// What the decoder reads, and what keeps it there.
struct Sources {
  std::vector<ImageSource> images;
  std::vector<std::shared_ptr<const void>> owners;

  void add(nb::handle source) {
    if (nb::isinstance<nb::str>(source)) {
      const nb::object path = nb::steal(PyUnicode_EncodeFSDefault(source.ptr()));  // any bytes, as the system's
      if (!path.is_valid()) nb::raise_python_error();
      images.push_back({.path = PyBytes_AsString(path.ptr()), .bytes = {}});
      return;
    }
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_Check(source.ptr()) && PyBytes_AsStringAndSize(source.ptr(), &bytes, &size) == 0) {
      images.push_back({.path = {}, .bytes = {reinterpret_cast<std::byte*>(bytes), static_cast<std::size_t>(size)}});
      owners.push_back(keep_alive(nb::borrow(source)));
      return;
    }
    BorrowedArray array = borrow_array(source, "picture " + std::to_string(images.size()));
    if (array.view.dtype != DType::kUInt8 || array.view.shape.ndim() != 1 || !array.view.is_contiguous())
      throw ConfigError("picture " + std::to_string(images.size()) + " is an array of " +
                        std::string(to_string(array.view.dtype)) + " " + array.view.shape.str() +
                        "; a file's bytes are uint8 of one dimension, without gaps.");
    images.push_back({.path = {}, .bytes = {array.view.data, array.view.nbytes()}});
    owners.push_back(std::move(array.owner));
  }
};

// One array over all pictures, or one for each.
nb::object decode(const nb::sequence& sources, const Compose& transforms, bool exact, bool orient, bool allow_truncated,
                  std::int64_t max_pixels, int threads, std::uint64_t seed, bool stacked, const std::string& output) {
  Sources pictures;
  for (const nb::handle source : sources) pictures.add(source);
  const ArrayFactory factory(output_from(output));
  factory.check("image", transforms.dtype());
  const DecodeImagesOptions options{
      .transforms = transforms,
      .decode = {.exact = exact, .orient = orient, .allow_truncated = allow_truncated, .max_pixels = max_pixels},
      .threads = threads,
      .seed = seed};
  const std::size_t count = pictures.images.size();
  std::vector<std::pair<Shape, std::shared_ptr<std::byte>>> singles(stacked ? 0 : count);
  const Shape batch = stacked ? transforms.output_shape().with_front(static_cast<std::int64_t>(count)) : Shape{};
  const auto whole = stacked ? memory_for(batch, transforms.dtype()) : nullptr;
  {
    const nb::gil_scoped_release unlocked;
    decode_images(pictures.images, options, [&](std::size_t i, const Shape& shape) {
      if (stacked) return whole.get() + i * static_cast<std::size_t>(shape.numel()) * itemsize(transforms.dtype());
      singles[i] = {shape, memory_for(shape, transforms.dtype())};
      return singles[i].second.get();
    });
  }
  const auto finish = [&](const Shape& shape, const std::shared_ptr<std::byte>& bytes) {
    SharedMemory memory(bytes);
    return factory.make(ArrayView(bytes.get(), transforms.dtype(), shape), memory);
  };
  if (stacked) return finish(batch, whole);
  nb::list list;
  for (const auto& [shape, bytes] : singles) list.append(finish(shape, bytes));
  return list;
}

}  // namespace

void bind_image(nb::module_& module) {
  module.def("decode_images", decode, nb::arg("sources"), nb::arg("transforms"), nb::arg("exact"), nb::arg("orient"),
             nb::arg("allow_truncated"), nb::arg("max_pixels"), nb::arg("threads"), nb::arg("seed"), nb::arg("stacked"),
             nb::arg("output"));
}

}  // namespace infeed::python
