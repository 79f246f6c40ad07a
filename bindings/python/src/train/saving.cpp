// Files of tensors, and checkpoints: each file is a pair of dicts, tensors and metadata.

#include "binder.h"
#include "data.h"
#include "infeed/train/saving/checkpoint.h"
#include "infeed/train/saving/safetensors.h"

namespace infeed::python {
namespace {

std::vector<NamedTensor> tensors_from(const nb::dict& dict) {
  std::vector<NamedTensor> tensors;
  for (const auto [name, tensor] : dict) tensors.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(tensor)});
  return tensors;
}

TensorFile file_from(const nb::dict& tensors, const nb::dict& metadata) {
  TensorFile file{tensors_from(tensors), {}};
  for (const auto [key, text] : metadata)
    file.metadata.emplace(nb::cast<std::string>(key), nb::cast<std::string>(text));
  return file;
}

nb::tuple to_python(const TensorFile& file) {
  nb::dict tensors, metadata;
  for (const auto& [name, tensor] : file.tensors) tensors[name.c_str()] = tensor;
  for (const auto& [key, text] : file.metadata) metadata[key.c_str()] = text;
  return nb::make_tuple(tensors, metadata);
}

std::filesystem::path path_of(const nb::bytes& path) { return std::string(path.c_str(), path.size()); }

// What write() of a raw stream leaves over is written again.
void write_all(const nb::callable& write, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    auto* const start = const_cast<char*>(reinterpret_cast<const char*>(bytes.data()));
    const auto view = nb::steal(PyMemoryView_FromMemory(start, static_cast<Py_ssize_t>(bytes.size()), PyBUF_READ));
    std::size_t written = bytes.size();
    nb::try_cast(write(view), written);
    bytes = bytes.subspan(std::min(written, bytes.size()));
  }
}

nb::tuple read_bytes(nb::handle data) {
  HeldBuffer held;
  if (PyObject_GetBuffer(data.ptr(), &held.buffer, PyBUF_WRITABLE) != 0) throw nb::python_error();
  const std::span<std::byte> bytes(static_cast<std::byte*>(held.buffer.buf), static_cast<std::size_t>(held.buffer.len));
  return to_python(read_safetensors(bytes, keep_alive(std::move(held))));
}

void bind_files(nb::module_& m) {
  m.def("_save_tensors", [](const nb::bytes& path, const nb::dict& tensors, const nb::dict& metadata) {
    const TensorFile file = file_from(tensors, metadata);
    const nb::gil_scoped_release unlocked;
    save(path_of(path), file.tensors, file.metadata);
  });
  m.def("_write_tensors", [](const nb::callable& write, const nb::dict& tensors, const nb::dict& metadata) {
    const TensorFile file = file_from(tensors, metadata);
    write_safetensors([&](std::span<const std::byte> bytes) { write_all(write, bytes); }, file.tensors, file.metadata);
  });
  m.def("_load_tensors", [](const nb::bytes& path, bool mmap) {
    LoadOptions options;
    options.mmap = mmap;
    return to_python(load(path_of(path), options));
  });
  m.def("_read_tensors", read_bytes);
}

void bind_checkpoints(nb::module_& m) {
  m.def("_save_checkpoint", [](const nb::bytes& folder, const nb::dict& parts) {
    Checkpoint checkpoint;
    for (const auto [name, part] : parts) {
      const auto [tensors, metadata] = nb::cast<std::pair<nb::dict, nb::dict>>(part);
      checkpoint.set_file(nb::cast<std::string>(name), file_from(tensors, metadata));
    }
    const nb::gil_scoped_release unlocked;
    checkpoint.save(path_of(folder));
  });
  m.def("_load_checkpoint", [](const nb::bytes& folder) {
    nb::dict parts;
    const Checkpoint checkpoint = Checkpoint::load(path_of(folder));
    for (const auto& [name, file] : checkpoint.files()) parts[name.c_str()] = to_python(file);
    return parts;
  });
  m.def("_latest_checkpoint", [](const nb::bytes& folder) -> std::optional<nb::bytes> {
    const auto found = Checkpoint::latest(path_of(folder));
    if (!found) return {};
    return nb::bytes(found->c_str(), found->string().size());
  });
}

}  // namespace

void bind_saving(nb::module_& module) {
  // nanobind's way. NOLINTNEXTLINE(bugprone-unused-raii,bugprone-throw-keyword-missing)
  nb::exception<SafetensorError>(module, "SafetensorError", PyExc_ValueError);
  bind_files(module);
  bind_checkpoints(module);
}

}  // namespace infeed::python
