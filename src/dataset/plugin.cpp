#include "dataset/plugin.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "dataset/plugin_dataset.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) throw ConfigError(fmt::format("plugin '{}' cannot be found: {}.", path, std::strerror(errno)));
  return real.get();
}

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
  const std::string file = absolute(path);
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw ConfigError(fmt::format("plugin '{}' cannot be loaded: {}.", file, dlerror()));
  const std::shared_ptr<PluginLibrary> library(new PluginLibrary(file, handle));
  const auto entry = reinterpret_cast<infeed_plugin_entry>(dlsym(handle, INFEED_PLUGIN_ENTRY));
  if (entry == nullptr)
    throw ConfigError(fmt::format("'{}' is no infeed plugin: it does not export {}. See infeed/plugin/abi.h.", file,
                                  INFEED_PLUGIN_ENTRY));
  const infeed_plugin* table = entry();
  if (table == nullptr) throw ConfigError(fmt::format("plugin '{}' gave no table: it cannot run here.", file));
  std::memcpy(&library->table_, table, std::min<std::size_t>(table->struct_size, sizeof(infeed_plugin)));
  library->check();
  return library;
}

void PluginLibrary::check() const {
  if (table_.struct_size < offsetof(infeed_plugin, abi_minor) + sizeof(table_.abi_minor) ||
      table_.magic != INFEED_PLUGIN_MAGIC)
    throw ConfigError(fmt::format("plugin '{}' starts with {:#010x}, not {:#010x}: its table is not infeed's.", path_,
                                  table_.magic, INFEED_PLUGIN_MAGIC));
  if (table_.abi_major != INFEED_ABI_MAJOR)
    throw ConfigError(fmt::format("plugin '{}' speaks ABI {}.{}, this infeed {}.{}. Build it for this version.", path_,
                                  table_.abi_major, table_.abi_minor, INFEED_ABI_MAJOR, INFEED_ABI_MINOR));
  if (table_.struct_size < sizeof(infeed_plugin) || (table_.num_datasets > 0 && table_.datasets == nullptr) ||
      (table_.num_worker_inits > 0 && table_.worker_inits == nullptr))
    throw ConfigError(fmt::format("plugin '{}' (ABI {}.{}) has a table of {} bytes with gaps; {} are needed.", path_,
                                  table_.abi_major, table_.abi_minor, table_.struct_size, sizeof(infeed_plugin)));
}

PluginLibrary::~PluginLibrary() { dlclose(handle_); }

std::unique_ptr<Dataset> PluginLibrary::make(const std::shared_ptr<const PluginLibrary>& self, const std::string& name,
                                             const State& params) {
  std::vector<std::string> names;
  const auto* api = find_entry(self->table_.datasets, self->table_.num_datasets, name, names);
  if (api == nullptr)
    throw ConfigError(
        fmt::format("plugin '{}' has no dataset '{}'. It has: {}.", self->path_, name, fmt::join(names, ", ")));
  return std::make_unique<PluginDataset>(self, *api, params);
}

Registry::WorkerInit PluginLibrary::worker_init(const std::shared_ptr<const PluginLibrary>& self,
                                                const std::string& name) {
  std::vector<std::string> names;
  const auto* api = find_entry(self->table_.worker_inits, self->table_.num_worker_inits, name, names);
  if (api == nullptr || api->struct_size < sizeof(*api) || api->run == nullptr)
    throw ConfigError(fmt::format("plugin '{}' has no usable worker_init '{}'. It has: {}.", self->path_, name,
                                  fmt::join(names, ", ")));
  return [self, api](int worker_id, int num_workers, std::uint64_t seed) {
    char error[kPluginErrorBytes] = "";
    const int code = api->run(worker_id, num_workers, seed, error, sizeof(error));
    throw_plugin_error(code, error, fmt::format("worker_init '{}' of plugin '{}'", api->name, self->path()));
  };
}

}  // namespace infeed
