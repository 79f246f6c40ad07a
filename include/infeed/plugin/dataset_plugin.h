#pragma once
/// Exports a C++ Dataset through the C table of abi.h. Include it in the plugin; infeed itself does not use it.
///
///   class Squares : public infeed::Dataset { public: explicit Squares(const infeed::State& params); ... };
///
///   extern "C" INFEED_API const infeed_plugin* infeed_plugin_v1() {
///     static const infeed_dataset_api squares = infeed::plugin::dataset_api<Squares>("squares");
///     static const infeed_dataset_api* const datasets[] = {&squares};
///     static const infeed_plugin table = infeed::plugin::table("squares", "1.0", datasets);
///     return &table;
///   }

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "infeed/base/error.h"
#include "infeed/dataset/dataset.h"
#include "infeed/plugin/abi.h"

namespace infeed::plugin {

/// Calls `body`; what it throws becomes a code and a text.
template <typename Body>
int guarded(char* error, std::uint64_t error_bytes, const Body& body) noexcept {
  const auto fail = [&](int code, const char* text) {
    std::snprintf(error, error_bytes, "%s", text);
    return code;
  };
  try {
    body();
    return INFEED_OK;
  } catch (const ConfigError& e) {
    return fail(INFEED_ERROR_CONFIG, e.what());
  } catch (const StateError& e) {
    return fail(INFEED_ERROR_CONFIG, e.what());
  } catch (const MemoryError& e) {
    return fail(INFEED_ERROR_MEMORY, e.what());
  } catch (const std::bad_alloc& e) {
    return fail(INFEED_ERROR_MEMORY, e.what());
  } catch (const std::exception& e) {
    return fail(INFEED_ERROR_DATA, e.what());
  } catch (...) {
    return fail(INFEED_ERROR_DATA, "an exception of unknown type");
  }
}

/// Asks infeed for the memory of variable fields.
class HostStore final : public VariableStore {
 public:
  explicit HostStore(infeed_row* row) noexcept : row_(row) {}
  std::byte* allocate(std::size_t field, const Shape& shape, std::size_t /*nbytes*/) override {
    char error[512] = "";
    if (row_->resize(row_, field, shape.begin(), shape.ndim(), error, sizeof(error)) != INFEED_OK)
      throw ConfigError(error);
    return static_cast<std::byte*>(row_->fields[field].data);
  }

 private:
  infeed_row* row_;
};

/// A dataset and what of it must have a stable address.
template <typename D>
struct Exported {
  explicit Exported(const State& params) : dataset(params), schema_json(dataset.schema().to_state().to_json()) {}
  D dataset;
  std::string schema_json;

  static const Exported& of(const void* self) noexcept { return *static_cast<const Exported*>(self); }

  void read(infeed_row* from) const {
    std::vector<ArrayView> views;
    views.reserve(from->num_fields);
    for (const infeed_array& array : std::span(from->fields, from->num_fields))
      views.emplace_back(array.data, static_cast<DType>(array.dtype),
                         Shape(std::span(array.shape, static_cast<std::size_t>(array.ndim))));
    HostStore store(from);
    StageTimes times;
    Row row(dataset.schema(), views, {from->seed, from->epoch, from->index, &times}, &store);
    dataset.read(row);
    from->times->read_ns += times.read_ns;
    from->times->decode_ns += times.decode_ns;
    from->times->transform_ns += times.transform_ns;
    from->times->bytes_read += times.bytes_read;
  }
};

/// The table of D, which has a constructor from `const State&`. `name` must live as long as the library.
template <typename D>
[[nodiscard]] infeed_dataset_api dataset_api(const char* name) noexcept {
  infeed_dataset_api api{};
  api.struct_size = sizeof(api);
  api.name = name;
  api.create = [](const char* params, void** out, char* error, std::uint64_t error_bytes) {
    return guarded(error, error_bytes,
                   [&] { *out = std::make_unique<Exported<D>>(State::from_json(params)).release(); });
  };
  api.destroy = [](void* self) { delete static_cast<Exported<D>*>(self); };
  api.size = [](const void* self) { return Exported<D>::of(self).dataset.size(); };
  api.schema_json = [](const void* self) { return Exported<D>::of(self).schema_json.c_str(); };
  api.read = [](const void* self, infeed_row* row, char* error, std::uint64_t error_bytes) {
    return guarded(error, error_bytes, [&] { Exported<D>::of(self).read(row); });
  };
  api.prefetch = [](const void* self, std::int64_t index) { Exported<D>::of(self).dataset.prefetch(index); };
  api.describe = [](const void* self, std::int64_t index, char* text, std::uint64_t text_bytes) {
    guarded(text, text_bytes,
            [&] { std::snprintf(text, text_bytes, "%s", Exported<D>::of(self).dataset.describe(index).c_str()); });
  };
  return api;
}

/// The plugin's table. The spans must live as long as the library.
[[nodiscard]] inline infeed_plugin table(const char* name, const char* version,
                                         std::span<const infeed_dataset_api* const> datasets,
                                         std::span<const infeed_worker_init_api* const> worker_inits = {}) noexcept {
  infeed_plugin table{};
  table.struct_size = sizeof(table);
  table.magic = INFEED_PLUGIN_MAGIC;
  table.abi_major = INFEED_ABI_MAJOR;
  table.abi_minor = INFEED_ABI_MINOR;
  table.name = name;
  table.version = version;
  table.num_datasets = datasets.size();
  table.datasets = datasets.data();
  table.num_worker_inits = worker_inits.size();
  table.worker_inits = worker_inits.data();
  return table;
}

}  // namespace infeed::plugin
