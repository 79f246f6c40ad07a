#pragma once
/// Shared libraries that bring datasets (infeed/plugin/abi.h).

#include <memory>
#include <string>
#include <utility>

#include "base/plugin_file.h"
#include "infeed/dataset/registry.h"

namespace infeed {

/// A loaded plugin; unloaded with its last dataset. Threads: const use from any.
class PluginLibrary {
 public:
  /// Throws ConfigError, as PluginFile::load.
  [[nodiscard]] static std::shared_ptr<const PluginLibrary> load(const std::string& path);
  explicit PluginLibrary(std::shared_ptr<const PluginFile> file) : file_(std::move(file)) {}

  /// The dataset of that name; throws ConfigError with the known ones, and what its create said. `self` owns *this.
  [[nodiscard]] static std::unique_ptr<Dataset> make(const std::shared_ptr<const PluginLibrary>& self,
                                                     const std::string& name, const State& params);
  [[nodiscard]] static Registry::WorkerInit worker_init(const std::shared_ptr<const PluginLibrary>& self,
                                                        const std::string& name);
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }

 private:
  std::shared_ptr<const PluginFile> file_;
};

}  // namespace infeed
