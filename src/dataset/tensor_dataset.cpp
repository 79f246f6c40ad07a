#include "infeed/dataset/tensor_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "batch/format.h"
#include "dataset/copy_row.h"
#include "dataset/sealed_file.h"
#include "dataset/widen.h"
#include "infeed/base/error.h"

namespace infeed {

/// Where one field's rows come from.
struct TensorDataset::Source {
  ArrayView array;          ///< [size, ...]
  ArrayView row;            ///< row 0
  std::int64_t step = 0;    ///< bytes from row to row
  std::size_t nbytes = 0;   ///< of a row, as stored
  bool contiguous = false;  ///< within a row
  WidenFn widen = nullptr;  ///< null: as stored
  std::size_t offset = 0;   ///< of the array in the memory file

  [[nodiscard]] const std::byte* at(std::int64_t index) const noexcept { return array.data + index * step; }
  void read(std::int64_t index, std::byte* out) const;
  void read_stored(std::int64_t index, std::byte* out) const noexcept;
};

/// The arrays' copy for spawned workers, made when the first spec() asks.
///
///   memory file: | array 0, C order | pad | array 1 | ...   each at a multiple of 128; dtypes and shapes: the params
struct TensorDataset::Shared {
  void write(std::span<const Source> sources, std::int64_t size);

  std::mutex mutex;
  std::unique_ptr<SealedFile> file;
};

void TensorDataset::Source::read_stored(std::int64_t index, std::byte* out) const noexcept {
  if (contiguous) return copy_bytes(out, at(index), nbytes);
  ArrayView view = row;
  view.data = array.data + index * step;
  copy_strided(out, view);
}

void TensorDataset::Source::read(std::int64_t index, std::byte* out) const {
  if (widen == nullptr) return read_stored(index, out);
  const std::size_t count = nbytes / itemsize(array.dtype);
  if (contiguous) return widen(out, at(index), count);
  std::vector<std::byte> packed(nbytes);
  read_stored(index, packed.data());
  widen(out, packed.data(), count);
}

namespace {

void check_array(const NamedArray& named, std::int64_t size) {
  const ArrayView& array = named.array;
  if (array.device.type != DeviceType::kCPU)
    throw ConfigError(fmt::format("array '{}' lies on a device; a dataset's arrays lie in host memory.", named.name));
  if (array.shape.empty())
    throw ConfigError(fmt::format("array '{}' is a scalar; its first dimension must count the samples.", named.name));
  if (array.shape[0] != size)
    throw ConfigError(
        fmt::format("array '{}' has shape {}, but the first array has {} samples. First dimensions must "
                    "be equal.",
                    named.name, array.shape.str(), size));
  if (!checked_nbytes(array.dtype, array.shape))
    throw ConfigError(fmt::format("array '{}' cannot have shape {}.", named.name, array.shape.str()));
}

WidenFn widening(const NamedArray& named, DType to) {
  const DType from = named.array.dtype;
  const WidenFn function = widen_function(from, to);
  if (from != to && function == nullptr)
    throw ConfigError(fmt::format("widen: field '{}' is {}, and {} does not hold all its values.", named.name,
                                  to_string(from), to_string(to)));
  return function;
}

void check_widen_names(const TensorDatasetOptions& options, const Schema& schema) {
  for (const auto& [name, dtype] : options.widen) {
    if (!schema.find(name)) throw ConfigError(fmt::format("widen names a field '{}' that does not exist.", name));
  }
}

}  // namespace

TensorDataset::TensorDataset(std::vector<NamedArray> arrays, TensorDatasetOptions options,
                             std::shared_ptr<const void> owner)
    : options_(std::move(options)), owner_(std::move(owner)), shared_(std::make_unique<Shared>()) {
  if (arrays.empty()) throw ConfigError("a TensorDataset needs one array or more.");
  size_ = arrays.front().array.shape.empty() ? 0 : arrays.front().array.shape[0];
  std::vector<Field> fields;
  std::size_t end = 0;
  for (const NamedArray& named : arrays) {
    check_array(named, size_);
    const auto wide = options_.widen.find(named.name);
    const DType dtype = wide == options_.widen.end() ? named.array.dtype : wide->second;
    fields.push_back({named.name, dtype, named.array.shape.without_front()});
    Source source;
    source.array = named.array;
    source.row = ArrayView(named.array.data, named.array.dtype, fields.back().shape);
    source.row.strides = Strides(named.array.strides.span().subspan(1));
    source.step = named.array.strides[0] * static_cast<std::int64_t>(itemsize(named.array.dtype));
    source.nbytes = source.row.nbytes();
    source.contiguous = source.row.is_contiguous();
    source.widen = widening(named, dtype);
    source.offset = align_up(end, kArrayAlign);
    end = source.offset + named.array.nbytes();
    sources_.push_back(source);
  }
  schema_ = Schema(std::move(fields));
  check_widen_names(options_, schema_);
}

TensorDataset::~TensorDataset() = default;

void TensorDataset::read(Row& row) const {
  if (row.index() < 0 || row.index() >= size_)
    throw IndexError(fmt::format("sample {} was asked of a TensorDataset of {}.", row.index(), size_));
  for (std::size_t f = 0; f < sources_.size(); ++f) sources_[f].read(row.index(), row[f].data);
}

void TensorDataset::prefetch(std::int64_t index) const noexcept {
  constexpr std::size_t kMaxBytes = 8 << 10;  // the hardware follows longer rows by itself
  if (index < 0 || index >= size_) return;
  for (const Source& source : sources_) {
    const std::byte* start = source.at(index);
    const std::size_t nbytes =
        source.contiguous ? std::min(source.nbytes, kMaxBytes) : std::min<std::size_t>(source.nbytes, 1);
    for (std::size_t i = 0; i < nbytes; i += 64) __builtin_prefetch(start + i);
  }
}

void TensorDataset::Shared::write(std::span<const Source> sources, std::int64_t size) {
  const std::size_t end = sources.back().offset + sources.back().nbytes * static_cast<std::size_t>(size);
  auto copy = std::make_unique<SealedFile>("infeed tensors", std::max<std::size_t>(end, 1));
  for (const Source& source : sources) {
    if (source.array.is_contiguous()) {
      copy->write(source.offset, {source.array.data, source.array.nbytes()});
      continue;
    }
    std::vector<std::byte> row(source.nbytes);
    for (std::int64_t i = 0; i < size; ++i) {
      source.read_stored(i, row.data());
      copy->write(source.offset + static_cast<std::size_t>(i) * row.size(), row);
    }
  }
  copy->seal();
  file = std::move(copy);
}

std::optional<DatasetSpec> TensorDataset::spec() const {
  std::vector<State> arrays;
  for (std::size_t f = 0; f < sources_.size(); ++f) {
    const ArrayView& array = sources_[f].array;
    State entry;
    entry.set("name", schema_[f].name);
    entry.set("dtype", to_string(array.dtype));
    entry.set("widen", to_string(schema_[f].dtype));
    entry.set("shape", std::vector<std::int64_t>(array.shape.begin(), array.shape.end()));
    entry.set("offset", static_cast<std::uint64_t>(sources_[f].offset));
    arrays.push_back(std::move(entry));
  }
  const std::lock_guard lock(shared_->mutex);
  if (shared_->file == nullptr) shared_->write(sources_, size_);
  State params;
  params.set("arrays", arrays);
  params.set("fds", std::vector<std::int64_t>{shared_->file->fd()});
  return DatasetSpec{"tensor_dataset", std::move(params), {}};
}

std::unique_ptr<TensorDataset> TensorDataset::from_params(const State& params) {
  const auto fds = params.get_ints("fds");
  if (fds.size() != 1)
    throw ConfigError(fmt::format("tensor_dataset needs the one descriptor of its spec(), {} are given.", fds.size()));
  auto mapping = std::make_shared<const FileMapping>(fds[0]);
  const std::span<const std::byte> bytes = mapping->bytes();
  std::vector<NamedArray> arrays;
  TensorDatasetOptions options;
  for (const State& entry : params.get_states("arrays")) {
    const std::string name = entry.get_string("name");
    const DType dtype = dtype_from_string(entry.get_string("dtype"));
    const Shape shape(entry.get_ints("shape"));
    const std::uint64_t offset = entry.get_uint("offset");
    const auto nbytes = checked_nbytes(dtype, shape);
    if (!nbytes || offset % kArrayAlign != 0 || offset > bytes.size() || *nbytes > bytes.size() - offset)
      throw ConfigError(
          fmt::format("array '{}' ({} at {}) does not lie in the memory file of {} bytes behind descriptor "
                      "{}: it is not the one of this spec().",
                      name, shape.str(), offset, bytes.size(), fds[0]));
    // Rows are only read: nothing writes through the dataset's views.
    arrays.push_back({name, ArrayView(const_cast<std::byte*>(bytes.data() + offset), dtype, shape)});
    options.widen[name] = dtype_from_string(entry.get_string("widen"));
  }
  return std::make_unique<TensorDataset>(std::move(arrays), std::move(options), std::move(mapping));
}

}  // namespace infeed
