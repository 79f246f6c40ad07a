#pragma once
/// Shared libraries that bring datasets (infeed/plugin/abi.h).

#include <memory>
#include <string>

#include "infeed/dataset/registry.h"
#include "infeed/plugin/abi.h"

namespace infeed {

/// A loaded plugin; unloaded with its last dataset. Threads: const use from any.
class PluginLibrary {
 public:
  /// Loads and checks. Throws ConfigError naming path and cause: not found, no entry symbol, other magic or version.
  [[nodiscard]] static std::shared_ptr<const PluginLibrary> load(const std::string& path);
  ~PluginLibrary();
  PluginLibrary(const PluginLibrary&) = delete;
  PluginLibrary& operator=(const PluginLibrary&) = delete;

  /// The dataset of that name; throws ConfigError with the known ones, and what its create said. `self` owns *this.
  [[nodiscard]] static std::unique_ptr<Dataset> make(const std::shared_ptr<const PluginLibrary>& self,
                                                     const std::string& name, const State& params);
  [[nodiscard]] static Registry::WorkerInit worker_init(const std::shared_ptr<const PluginLibrary>& self,
                                                        const std::string& name);
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  PluginLibrary(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  void check() const;

  std::string path_;  ///< absolute
  void* handle_;
  infeed_plugin table_{};  ///< what both sides know of it; the rest is zero
};

}  // namespace infeed
