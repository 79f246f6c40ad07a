#pragma once
/// A plugin's dataset as one of ours.

#include <memory>
#include <string>

#include "infeed/dataset/dataset.h"
#include "infeed/plugin/abi.h"

namespace infeed {

class PluginLibrary;

inline constexpr std::size_t kPluginErrorBytes = 1024;

/// Throws what `code` stands for, with `what` before the text; nothing for INFEED_OK. `text` has kPluginErrorBytes.
void throw_plugin_error(int code, char* text, const std::string& what);

/// Keeps its library loaded.
class PluginDataset final : public Dataset {
 public:
  /// Throws ConfigError where the table has gaps or the schema is no schema, and what create said.
  PluginDataset(std::shared_ptr<const PluginLibrary> library, const infeed_dataset_api& api, const State& params);
  ~PluginDataset() override;

  [[nodiscard]] std::int64_t size() const override { return size_; }
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override;
  void prefetch(std::int64_t index) const noexcept override;
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;
  [[nodiscard]] std::string describe(std::int64_t index) const override;

 private:
  void load_schema();

  std::shared_ptr<const PluginLibrary> library_;
  infeed_dataset_api api_{};
  State params_;
  std::unique_ptr<void, void (*)(void*)> self_;
  std::int64_t size_ = 0;
  Schema schema_;
};

}  // namespace infeed
