#include "dataset.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>

#include "array.h"
#include "infeed/base/error.h"
#include "infeed/dataset/dataset_stream.h"
#include "infeed/dataset/image_folder.h"
#include "infeed/dataset/registry.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/dataset/tensor_dataset.h"

namespace infeed::python {
namespace {

using Unlocked = nb::gil_scoped_release;

// One sample's memory, outside any batch.
class SampleStore final : public VariableStore {
 public:
  explicit SampleStore(std::size_t fields) : memory_(fields) {}
  std::byte* allocate(std::size_t field, const Shape& /*shape*/, std::size_t nbytes) override {
    memory_[field] = std::shared_ptr<std::byte>(new (std::align_val_t{64}) std::byte[nbytes + 1],
                                                [](std::byte* p) { ::operator delete[](p, std::align_val_t{64}); });
    return memory_[field].get();
  }

 private:
  std::vector<std::shared_ptr<std::byte>> memory_;
};

nb::dict read_sample(const DatasetHandle& self, std::int64_t index, std::uint64_t seed, std::uint64_t epoch,
                     const std::string& output) {
  const Dataset& dataset = *self.dataset;
  if (index < 0 || index >= dataset.size())
    throw IndexError("sample " + std::to_string(index) + " of a dataset of " + std::to_string(dataset.size()) + ".");
  const ArrayFactory factory(output_from(output));
  const Schema& schema = dataset.schema();
  const auto store = std::make_shared<SampleStore>(schema.size());
  std::vector<ArrayView> arrays(schema.size());
  StageTimes times;
  {
    const Unlocked unlocked;
    for (std::size_t f = 0; f < schema.size(); ++f) {
      if (schema[f].variable()) continue;
      arrays[f] = ArrayView(nullptr, schema[f].dtype, schema[f].shape);
      arrays[f].data = store->allocate(f, schema[f].shape, arrays[f].nbytes());
    }
    Row row(schema, arrays, {.seed = seed, .epoch = epoch, .index = index, .times = &times}, store.get());
    dataset.read(row);
  }
  SharedMemory memory(store);
  nb::dict sample;
  for (std::size_t f = 0; f < schema.size(); ++f) {
    factory.check(schema[f].name, schema[f].dtype);
    sample[schema[f].name.c_str()] = factory.make(arrays[f], memory);
  }
  return sample;
}

// As os.fsdecode: a file's name may be any bytes.
nb::str path_of(std::string_view path) {
  nb::str text =
      nb::steal<nb::str>(PyUnicode_DecodeFSDefaultAndSize(path.data(), static_cast<Py_ssize_t>(path.size())));
  if (!text.is_valid()) nb::raise_python_error();
  return text;
}

nb::typed<nb::list, nb::str> paths_of(const std::vector<std::string>& paths) {
  nb::typed<nb::list, nb::str> texts;
  for (const std::string& path : paths) texts.append(path_of(path));
  return texts;
}

std::string bytes_of(const nb::bytes& path) { return {path.c_str(), path.size()}; }

DatasetHandle image_folder(const nb::bytes& root, const Compose& transforms, bool exact, bool orient,
                           bool allow_truncated, std::int64_t max_pixels, std::vector<std::string> extensions,
                           const std::string& label_dtype, const std::string& decode, const std::string& cache,
                           std::uint64_t cache_bytes, const nb::bytes& index_cache) {
  ImageFolderOptions options{.transforms = transforms,
                             .decode = {.exact = exact,
                                        .orient = orient,
                                        .allow_truncated = allow_truncated,
                                        .max_pixels = max_pixels,
                                        .path = decode_path_from_string(decode)},
                             .extensions = std::move(extensions),
                             .label_dtype = dtype_from_string(label_dtype),
                             .cache = image_cache_from_string(cache),
                             .cache_bytes = cache_bytes,
                             .index_cache = bytes_of(index_cache)};
  const std::string folder = bytes_of(root);
  const Unlocked unlocked;  // walking the folders takes long
  return {std::make_shared<ImageFolder>(folder, std::move(options))};
}

const ImageFolder& as_folder(const DatasetHandle& self) {
  const auto* folder = dynamic_cast<const ImageFolder*>(self.dataset.get());
  if (folder == nullptr) throw nb::type_error("this dataset is no image folder");
  return *folder;
}

nb::tuple cache_stats(const DatasetHandle& self) {
  const ImageCacheStats stats = as_folder(self).cache_stats();
  return nb::make_tuple(stats.pictures, stats.bytes, stats.hits);
}

DatasetHandle arrays(const std::vector<std::pair<std::string, nb::object>>& fields,
                     const std::map<std::string, std::string>& widen) {
  auto owners = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  std::vector<NamedArray> views;
  for (const auto& [name, object] : fields) {
    BorrowedArray array = borrow_array(object, "array '" + name + "'");
    views.push_back({name, array.view});
    owners->push_back(std::move(array.owner));
  }
  TensorDatasetOptions options;
  for (const auto& [name, dtype] : widen) options.widen[name] = dtype_from_string(dtype);
  return {std::make_shared<TensorDataset>(std::move(views), std::move(options), owners)};
}

DatasetHandle made(const std::string& name, const std::string& params, const std::string& plugin) {
  const DatasetSpec spec{name, State::from_json(params), plugin};
  const Unlocked unlocked;
  return {Registry::builtin().make(spec)};
}

StreamHandle made_stream(const std::string& name, const std::string& params) {
  const DatasetSpec spec{name, State::from_json(params), {}};
  const Unlocked unlocked;
  return {Registry::builtin().make_stream(spec)};
}

nb::list fields_of(const Schema& schema) {
  nb::list fields;
  for (const Field& field : schema.fields()) {
    nb::list shape;
    for (const std::int64_t size : field.shape) shape.append(size);
    fields.append(nb::make_tuple(field.name, std::string(to_string(field.dtype)), nb::tuple(shape)));
  }
  return fields;
}

}  // namespace

void bind_dataset(nb::module_& module) {
  nb::class_<DatasetHandle>(module, "Dataset")
      .def_static("image_folder", image_folder)
      .def_static("arrays", arrays)
      .def_static("make", made, "A dataset that the registry, or a plugin's, knows by name.")
      .def("__len__", [](const DatasetHandle& self) { return self.dataset->size(); })
      .def("fields", [](const DatasetHandle& self) { return fields_of(self.dataset->schema()); })
      .def("read", read_sample, nb::arg("index"), nb::arg("seed"), nb::arg("epoch"), nb::arg("output"))
      .def("describe",
           [](const DatasetHandle& self, std::int64_t index) { return path_of(self.dataset->describe(index)); })
      .def("classes", [](const DatasetHandle& self) { return paths_of(as_folder(self).classes()); })
      .def("path", [](const DatasetHandle& self, std::int64_t index) { return path_of(as_folder(self).path(index)); })
      .def("label", [](const DatasetHandle& self, std::int64_t index) { return as_folder(self).label(index); })
      .def("cache_stats", cache_stats)
      .def("paths", [](const DatasetHandle& self) { return paths_of(as_folder(self).paths()); });
  nb::class_<StreamHandle>(module, "Stream")
      .def_static(
          "of_dataset",
          [](const DatasetHandle& dataset) { return StreamHandle{std::make_shared<DatasetStream>(dataset.dataset)}; })
      .def_static("make", made_stream)
      .def("size",
           [](const StreamHandle& self) -> nb::object {
             const auto size = self.stream->size();
             return size ? nb::cast(*size) : nb::none();
           })
      .def("fields", [](const StreamHandle& self) { return fields_of(self.stream->schema()); });
}

}  // namespace infeed::python
