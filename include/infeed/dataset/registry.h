#pragma once
/// Names to datasets: how a spawned worker makes what its parent has.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "infeed/base/export.h"
#include "infeed/dataset/dataset.h"

namespace infeed {

/// Filled explicitly; no global exists. A plugin's names live in the plugin and are found through DatasetSpec::plugin.
/// Threads: a value; const use from any.
class INFEED_API Registry {
 public:
  using DatasetFactory = std::function<std::unique_ptr<Dataset>(const State& params)>;
  using StreamFactory = std::function<std::unique_ptr<Stream>(const State& params)>;
  /// Runs in a worker before its first sample.
  using WorkerInit = std::function<void(int worker_id, int num_workers, std::uint64_t seed)>;

  Registry() = default;
  /// The built-in names: image_folder, tensor_dataset and synthetic; as streams dataset_stream and synthetic_stream.
  [[nodiscard]] static Registry builtin();

  /// Each throws ConfigError where the name is taken.
  void add(const std::string& name, DatasetFactory factory);
  void add_stream(const std::string& name, StreamFactory factory);
  void add_worker_init(const std::string& name, WorkerInit init);

  /// The dataset that `spec` describes, from its plugin if it names one. Throws ConfigError on an unknown name (with
  /// the known ones) or a plugin that cannot be used (path, versions), and what the factory throws.
  [[nodiscard]] std::unique_ptr<Dataset> make(const DatasetSpec& spec) const;
  [[nodiscard]] std::unique_ptr<Stream> make_stream(const DatasetSpec& spec) const;
  /// The worker_init of that name, from `plugin` if that is not empty. Throws ConfigError.
  [[nodiscard]] WorkerInit worker_init(const std::string& name, const std::string& plugin = {}) const;

 private:
  std::map<std::string, DatasetFactory> datasets_;
  std::map<std::string, StreamFactory> streams_;
  std::map<std::string, WorkerInit> worker_inits_;
};

}  // namespace infeed
