#include "base/plugin_file.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::size_t kFirstTable = offsetof(infeed_plugin, num_devices);  // bytes, as of ABI 1.0

std::string absolute(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) throw ConfigError(fmt::format("plugin '{}' cannot be found: {}.", path, std::strerror(errno)));
  return real.get();
}

}  // namespace

std::shared_ptr<const PluginFile> PluginFile::load(const std::string& path, Unload unload) {
  const std::string file = absolute(path);
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | (unload == Unload::kNever ? RTLD_NODELETE : 0));
  if (handle == nullptr) throw ConfigError(fmt::format("plugin '{}' cannot be loaded: {}.", file, dlerror()));
  const std::shared_ptr<PluginFile> library(new PluginFile(file, handle));
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

void PluginFile::check() const {
  if (table_.struct_size < offsetof(infeed_plugin, abi_minor) + sizeof(table_.abi_minor) ||
      table_.magic != INFEED_PLUGIN_MAGIC)
    throw ConfigError(fmt::format("plugin '{}' starts with {:#010x}, not {:#010x}: its table is not infeed's.", path_,
                                  table_.magic, INFEED_PLUGIN_MAGIC));
  if (table_.abi_major != INFEED_ABI_MAJOR)
    throw ConfigError(fmt::format("plugin '{}' speaks ABI {}.{}, this infeed {}.{}. Build it for this version.", path_,
                                  table_.abi_major, table_.abi_minor, INFEED_ABI_MAJOR, INFEED_ABI_MINOR));
  if (table_.struct_size < kFirstTable || (table_.num_datasets > 0 && table_.datasets == nullptr) ||
      (table_.num_worker_inits > 0 && table_.worker_inits == nullptr) ||
      (table_.num_devices > 0 && table_.devices == nullptr))
    throw ConfigError(fmt::format("plugin '{}' (ABI {}.{}) has a table of {} bytes with gaps; {} are needed.", path_,
                                  table_.abi_major, table_.abi_minor, table_.struct_size, kFirstTable));
}

PluginFile::~PluginFile() { dlclose(handle_); }

}  // namespace infeed
