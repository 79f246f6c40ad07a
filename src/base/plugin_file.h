#pragma once
/// A plugin's shared library and the table that it exports (infeed/plugin/abi.h).

#include <memory>
#include <string>
#include <utility>

#include "infeed/plugin/abi.h"

namespace infeed {

/// Loaded as long as it lives. Threads: const use from any.
class PluginFile {
 public:
  enum class Unload : bool {
    kWithTheLastUser,
    kNever,  ///< for libraries with threads of their own
  };

  /// Loads and checks. Throws ConfigError naming path and cause: not found, no entry symbol, other magic or version.
  [[nodiscard]] static std::shared_ptr<const PluginFile> load(const std::string& path,
                                                              Unload unload = Unload::kWithTheLastUser);
  ~PluginFile();
  PluginFile(const PluginFile&) = delete;
  PluginFile& operator=(const PluginFile&) = delete;

  /// Absolute.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  /// What both sides know of it; the rest is zero.
  [[nodiscard]] const infeed_plugin& table() const noexcept { return table_; }

 private:
  PluginFile(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  void check() const;

  std::string path_;
  void* handle_;
  infeed_plugin table_{};
};

}  // namespace infeed
