#include "dataset/plugin.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <vector>

#include "dataset/plugin_dataset.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

/// The entry of that name of a plugin's list; nullptr if there is none. Fills `names` with all.
template <typename Api>
const Api* find_entry(const Api* const* list, std::uint64_t count, const std::string& name,
                      std::vector<std::string>& names) {
  const Api* found = nullptr;
  for (const Api* entry : std::span(list, count)) {
    if (entry == nullptr || entry->name == nullptr) continue;
    names.emplace_back(entry->name);
    if (name == entry->name) found = entry;
  }
  return found;
}

}  // namespace

std::shared_ptr<const PluginLibrary> PluginLibrary::load(const std::string& path) {
  return std::make_shared<const PluginLibrary>(PluginFile::load(path));
}

std::unique_ptr<Dataset> PluginLibrary::make(const std::shared_ptr<const PluginLibrary>& self, const std::string& name,
                                             const State& params) {
  std::vector<std::string> names;
  const auto* api = find_entry(self->file_->table().datasets, self->file_->table().num_datasets, name, names);
  if (api == nullptr)
    throw ConfigError(
        fmt::format("plugin '{}' has no dataset '{}'. It has: {}.", self->path(), name, fmt::join(names, ", ")));
  return std::make_unique<PluginDataset>(self, *api, params);
}

Registry::WorkerInit PluginLibrary::worker_init(const std::shared_ptr<const PluginLibrary>& self,
                                                const std::string& name) {
  std::vector<std::string> names;
  const auto* api = find_entry(self->file_->table().worker_inits, self->file_->table().num_worker_inits, name, names);
  if (api == nullptr || api->struct_size < sizeof(*api) || api->run == nullptr)
    throw ConfigError(fmt::format("plugin '{}' has no usable worker_init '{}'. It has: {}.", self->path(), name,
                                  fmt::join(names, ", ")));
  return [self, api](int worker_id, int num_workers, std::uint64_t seed) {
    char error[kPluginErrorBytes] = "";
    const int code = api->run(worker_id, num_workers, seed, error, sizeof(error));
    throw_plugin_error(code, error, fmt::format("worker_init '{}' of plugin '{}'", api->name, self->path()));
  };
}

}  // namespace infeed
