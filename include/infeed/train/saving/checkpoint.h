#pragma once
/// Checkpoints: all that a run needs to go on, in one folder that appears whole or not at all.

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "infeed/base/export.h"
#include "infeed/train/saving/safetensors.h"
#include "infeed/train/tensor/named_tensor.h"

namespace infeed {

/// Parts by name, each with tensors and JSON:
///
///   Checkpoint now;
///   now.set("model", model.state_dict());
///   now.set("optimizer", optimizer.state_dict());
///   now.set("loader", loader.state_dict());
///   now.set("random", {{"cpu", default_generator().get_state()}});
///   now.save("run/step-1000");
///   ...
///   const Checkpoint last = Checkpoint::load(Checkpoint::latest("run").value());
///   loader.load_state_dict(last.at("loader").state);
///
///   <folder>/checkpoint.json     {"parts": {"model": <bytes of the file>, ...}, "saved_ns": ..., "version": 1}
///   <folder>/model.safetensors   tensors; JSON in the metadata, under "infeed.state" (Python's own data: "infeed.tree")
///
/// Threads: as a standard container; several processes may save under one name, the last one stays.
/// Errors: StateError for a missing part, a folder that is no checkpoint or is not whole; FileError, SafetensorError.
class INFEED_API Checkpoint {
 public:
  /// `part` names a file: ConfigError where it cannot.
  void set(std::string_view part, const StateDict& content);
  void set_file(std::string_view part, TensorFile file);

  [[nodiscard]] bool contains(std::string_view part) const;
  [[nodiscard]] StateDict at(std::string_view part) const;
  [[nodiscard]] const std::map<std::string, TensorFile, std::less<>>& files() const noexcept { return files_; }

  /// Replaces a checkpoint of that name: a crash leaves the old one or the new one. Returns when it is on the disk. Makes
  /// the folders above. ConfigError where something else than a checkpoint is in the way.
  void save(const std::filesystem::path& folder) const;

  [[nodiscard]] static Checkpoint load(const std::filesystem::path& folder, const LoadOptions& options = {});

  /// The checkpoint in `folder` that was saved last; those that are not whole are passed over.
  [[nodiscard]] static std::optional<std::filesystem::path> latest(const std::filesystem::path& folder);

 private:
  std::map<std::string, TensorFile, std::less<>> files_;
};

}  // namespace infeed
