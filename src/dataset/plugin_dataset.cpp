#include "dataset/plugin_dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "dataset/plugin.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::size_t kMaxFields = 64;

static_assert(INFEED_MAX_DIMS == kMaxDims);

/// What the plugin sees of a row, and the way back.
struct HostRow {
  infeed_row row{};
  std::array<infeed_array, kMaxFields> fields;  // intentional: only num_fields of them are set
  infeed_stage_times times{};
  Row* target = nullptr;

  void view(std::size_t field) noexcept {
    const ArrayView& from = (*target)[field];
    infeed_array& to = fields[field];
    to.data = from.data;
    to.dtype = static_cast<std::int32_t>(from.dtype);
    to.ndim = from.shape.ndim();
    std::copy(from.shape.begin(), from.shape.end(), to.shape);
  }
};

int resize_row(infeed_row* row, std::uint64_t field, const std::int64_t* shape, std::int32_t ndim, char* error,
               std::uint64_t error_bytes) noexcept {
  auto& host = *static_cast<HostRow*>(row->host);
  try {
    if (ndim < 0 || ndim > kMaxDims) throw ConfigError(fmt::format("a field was resized to {} dimensions.", ndim));
    host.target->resize(field, Shape(std::span(shape, static_cast<std::size_t>(ndim))));
    host.view(field);
    return INFEED_OK;
  } catch (const std::exception& e) {
    std::snprintf(error, error_bytes, "%s", e.what());
    return INFEED_ERROR_CONFIG;
  }
}

void add_times(StageTimes* to, const infeed_stage_times& from) noexcept {
  if (to == nullptr) return;
  to->read_ns += from.read_ns;
  to->decode_ns += from.decode_ns;
  to->transform_ns += from.transform_ns;
  to->bytes_read += from.bytes_read;
}

}  // namespace

void throw_plugin_error(int code, char* text, const std::string& what) {
  if (code == INFEED_OK) return;
  text[kPluginErrorBytes - 1] = '\0';
  const std::string message = fmt::format("{}: {}", what, *text != '\0' ? text : "failed without a word");
  if (code == INFEED_ERROR_CONFIG) throw ConfigError(message);
  if (code == INFEED_ERROR_MEMORY) throw MemoryError(message);
  throw DataError(message);
}

PluginDataset::PluginDataset(std::shared_ptr<const PluginLibrary> library, const infeed_dataset_api& api,
                             const State& params)
    : library_(std::move(library)), params_(params), self_(nullptr, api.destroy) {
  std::memcpy(&api_, &api, std::min<std::size_t>(api.struct_size, sizeof(api_)));
  if (api_.struct_size < sizeof(api_) || api_.create == nullptr || api_.destroy == nullptr || api_.size == nullptr ||
      api_.schema_json == nullptr || api_.read == nullptr)
    throw ConfigError(fmt::format("plugin '{}': the table of dataset '{}' has gaps.", library_->path(), api_.name));
  char error[kPluginErrorBytes] = "";
  void* self = nullptr;
  const int code = api_.create(params.to_json().c_str(), &self, error, sizeof(error));
  throw_plugin_error(code, error, fmt::format("dataset '{}' of plugin '{}'", api_.name, library_->path()));
  self_.reset(self);
  size_ = api_.size(self);
  if (size_ < 0)
    throw ConfigError(
        fmt::format("dataset '{}' of plugin '{}' says it has {} samples.", api_.name, library_->path(), size_));
  load_schema();
}

PluginDataset::~PluginDataset() = default;

void PluginDataset::load_schema() {
  const char* json = api_.schema_json(self_.get());
  try {
    schema_ = Schema::from_state(State::from_json(json == nullptr ? "" : json));
  } catch (const Error& e) {
    throw ConfigError(
        fmt::format("dataset '{}' of plugin '{}' has no valid schema: {}", api_.name, library_->path(), e.what()));
  }
  if (schema_.size() > kMaxFields)
    throw ConfigError(fmt::format("dataset '{}' of plugin '{}' has {} fields, at most {} are supported.", api_.name,
                                  library_->path(), schema_.size(), kMaxFields));
}

void PluginDataset::read(Row& row) const {
  if (row.index() < 0 || row.index() >= size_)
    throw IndexError(fmt::format("sample {} was asked of dataset '{}' of {}.", row.index(), api_.name, size_));
  HostRow host;
  host.target = &row;
  for (std::size_t f = 0; f < schema_.size(); ++f) host.view(f);
  const SampleContext& context = row.context();
  host.row = {sizeof(infeed_row), row.index(), context.seed, context.epoch, schema_.size(),
              host.fields.data(), &host.times, &host,        resize_row};
  char error[kPluginErrorBytes];
  *error = '\0';
  const int code = api_.read(self_.get(), &host.row, error, sizeof(error));
  add_times(context.times, host.times);
  if (code != INFEED_OK)
    throw_plugin_error(code, error, fmt::format("sample {} of dataset '{}'", row.index(), api_.name));
}

void PluginDataset::prefetch(std::int64_t index) const noexcept {
  if (api_.prefetch != nullptr && index >= 0 && index < size_) api_.prefetch(self_.get(), index);
}

std::optional<DatasetSpec> PluginDataset::spec() const { return DatasetSpec{api_.name, params_, library_->path()}; }

std::string PluginDataset::describe(std::int64_t index) const {
  char text[kPluginErrorBytes] = "";
  if (api_.describe != nullptr && index >= 0 && index < size_) api_.describe(self_.get(), index, text, sizeof(text));
  text[kPluginErrorBytes - 1] = '\0';
  return text;
}

}  // namespace infeed
