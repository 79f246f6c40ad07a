#include "infeed/dataset/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

#include "dataset/plugin.h"
#include "infeed/base/error.h"
#include "infeed/dataset/dataset_stream.h"
#include "infeed/dataset/image_folder.h"
#include "infeed/dataset/synthetic.h"
#include "infeed/dataset/tensor_dataset.h"

namespace infeed {
namespace {

template <typename Value>
void insert(std::map<std::string, Value>& map, const char* what, const std::string& name, Value value) {
  if (name.empty() || !value)
    throw ConfigError(fmt::format("a {} '{}' without name or function was registered.", what, name));
  if (!map.emplace(name, std::move(value)).second)
    throw ConfigError(fmt::format("a {} named '{}' is registered already.", what, name));
}

template <typename Value>
const Value& find(const std::map<std::string, Value>& map, const char* what, const std::string& name) {
  const auto found = map.find(name);
  if (found != map.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : map) names.push_back(known);
  throw ConfigError(fmt::format("no {} '{}' is registered. Known: {}. Is the plugin's path missing in its spec?", what,
                                name, fmt::join(names, ", ")));
}

constexpr const char* kDatasetStream = "dataset_stream";

}  // namespace

Registry Registry::builtin() {
  Registry registry;
  registry.add("image_folder", [](const State& params) { return ImageFolder::from_params(params); });
  registry.add("tensor_dataset", [](const State& params) { return TensorDataset::from_params(params); });
  registry.add("synthetic", [](const State& params) { return SyntheticDataset::from_params(params); });
  registry.add_stream("synthetic_stream", [](const State& params) { return SyntheticStream::from_params(params); });
  return registry;
}

void Registry::add(const std::string& name, DatasetFactory factory) {
  insert(datasets_, "dataset", name, std::move(factory));
}

void Registry::add_stream(const std::string& name, StreamFactory factory) {
  if (name == kDatasetStream) throw ConfigError("a stream named 'dataset_stream' is built in.");
  insert(streams_, "stream", name, std::move(factory));
}

void Registry::add_worker_init(const std::string& name, WorkerInit init) {
  insert(worker_inits_, "worker_init", name, std::move(init));
}

std::unique_ptr<Dataset> Registry::make(const DatasetSpec& spec) const {
  if (!spec.plugin.empty()) return PluginLibrary::make(PluginLibrary::load(spec.plugin), spec.name, spec.params);
  auto dataset = find(datasets_, "dataset", spec.name)(spec.params);
  if (dataset == nullptr) throw ConfigError(fmt::format("the factory of dataset '{}' made nothing.", spec.name));
  return dataset;
}

std::unique_ptr<Stream> Registry::make_stream(const DatasetSpec& spec) const {
  if (!spec.plugin.empty())
    throw ConfigError(
        fmt::format("stream '{}' names plugin '{}', but plugins bring datasets only.", spec.name, spec.plugin));
  if (spec.name == kDatasetStream) {
    const State& p = spec.params;
    State inner = p.get_state("params");
    if (p.contains("fds")) inner.set("fds", p.get_ints("fds"));  // the numbers that hold in this process
    return std::make_unique<DatasetStream>(make({p.get_string("name"), std::move(inner), p.get_string("plugin")}));
  }
  auto stream = find(streams_, "stream", spec.name)(spec.params);
  if (stream == nullptr) throw ConfigError(fmt::format("the factory of stream '{}' made nothing.", spec.name));
  return stream;
}

Registry::WorkerInit Registry::worker_init(const std::string& name, const std::string& plugin) const {
  if (!plugin.empty()) return PluginLibrary::worker_init(PluginLibrary::load(plugin), name);
  return find(worker_inits_, "worker_init", name);
}

}  // namespace infeed
