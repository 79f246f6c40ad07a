#include "infeed/train/saving/checkpoint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <iterator>
#include <tuple>
#include <vector>

#include "train/saving/atomic_file.h"
#include "train/saving/atomic_folder.h"

namespace infeed {
namespace fs = std::filesystem;
namespace {

constexpr const char* kManifest = "checkpoint.json";
constexpr const char* kState = "infeed.state";
constexpr std::int64_t kVersion = 1;

std::string file_name(std::string_view part) { return fmt::format("{}.safetensors", part); }

State manifest_of(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) throw FileError(folder, "is no checkpoint", ENOENT);
  std::ifstream file(folder / kManifest, std::ios::binary);
  if (!file) throw StateError(fmt::format("'{}' is no checkpoint: it has no {}.", folder.string(), kManifest));
  State manifest = State::from_json(std::string(std::istreambuf_iterator<char>(file), {}));
  if (const std::int64_t version = manifest.get_int("version"); version != kVersion)
    throw StateError(
        fmt::format("the checkpoint '{}' has version {}, this library reads {}.", folder.string(), version, kVersion));
  return manifest;
}

// Throws StateError unless every part has the size that the manifest tells.
void check_whole(const fs::path& folder, const State& parts) {
  for (const std::string& part : parts.keys()) {
    std::error_code missing;
    const std::uintmax_t bytes = fs::file_size(folder / file_name(part), missing);
    if (missing || bytes != parts.get_uint(part))
      throw StateError(fmt::format("the checkpoint '{}' is not whole: {} should have {} bytes and {}.", folder.string(),
                                   file_name(part), parts.get_uint(part),
                                   missing ? missing.message() : fmt::format("has {}", bytes)));
  }
}

void write_text(const fs::path& path, std::string_view text) {
  saving::AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// A folder of the user's own is no place for a checkpoint.
void check_place(const fs::path& target) {
  std::error_code none;
  if (!fs::exists(target, none) || fs::exists(target / kManifest, none)) return;
  if (fs::is_directory(target, none) && fs::is_empty(target, none)) return;
  throw ConfigError(fmt::format("'{}' exists and is no checkpoint, so none is saved in its place.", target.string()));
}

}  // namespace

void Checkpoint::set(std::string_view part, const StateDict& content) {
  TensorFile file{content.tensors, {}};
  if (!content.state.keys().empty()) file.metadata.emplace(kState, content.state.to_json());
  set_file(part, std::move(file));
}

void Checkpoint::set_file(std::string_view part, TensorFile file) {
  if (part.empty() || part.front() == '.' || part.find_first_of(std::string_view("/\0", 2)) != std::string_view::npos)
    throw ConfigError(fmt::format("'{}' cannot name a part of a checkpoint, since it names a file.", part));
  files_.insert_or_assign(std::string(part), std::move(file));
}

bool Checkpoint::contains(std::string_view part) const { return files_.find(part) != files_.end(); }

StateDict Checkpoint::at(std::string_view part) const {
  const auto found = files_.find(part);
  if (found == files_.end()) {
    std::vector<std::string_view> names;
    for (const auto& [name, file] : files_) names.push_back(name);
    throw StateError(fmt::format("the checkpoint has no part '{}'; it has [{}].", part, fmt::join(names, ", ")));
  }
  StateDict content(found->second.tensors);
  const auto& metadata = found->second.metadata;
  if (const auto state = metadata.find(kState); state != metadata.end())
    content.state = State::from_json(state->second);
  return content;
}

void Checkpoint::save(const fs::path& folder) const {
  if (files_.empty()) throw ConfigError("a checkpoint without parts is not saved: set() them first.");
  const fs::path target = folder.has_filename() ? folder : folder.parent_path();
  check_place(target);
  saving::AtomicFolder fresh(target);
  State parts, manifest;
  for (const auto& [part, file] : files_) {
    infeed::save(fresh.path() / file_name(part), file.tensors, file.metadata);
    parts.set(part, static_cast<std::uint64_t>(fs::file_size(fresh.path() / file_name(part))));
  }
  manifest.set("parts", parts);
  manifest.set("version", kVersion);
  manifest.set("saved_ns", static_cast<std::int64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
  write_text(fresh.path() / kManifest, manifest.to_json());
  fresh.commit();
}

Checkpoint Checkpoint::load(const fs::path& folder, const LoadOptions& options) {
  const fs::path found = saving::present_folder(folder.has_filename() ? folder : folder.parent_path());
  const State parts = manifest_of(found).get_state("parts");
  check_whole(found, parts);
  Checkpoint checkpoint;
  for (const std::string& part : parts.keys())
    checkpoint.set_file(part, infeed::load(found / file_name(part), options));
  return checkpoint;
}

std::optional<fs::path> Checkpoint::latest(const fs::path& folder) {
  std::optional<fs::path> newest;
  std::int64_t newest_ns = 0;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename().string().starts_with('.') || !entry.is_directory(none)) continue;
    try {
      const State manifest = manifest_of(entry.path());
      check_whole(entry.path(), manifest.get_state("parts"));
      const std::int64_t saved_ns = manifest.get_int("saved_ns");
      if (newest && std::tie(saved_ns, entry.path()) < std::tie(newest_ns, *newest)) continue;
      newest = entry.path();
      newest_ns = saved_ns;
    } catch (const StateError&) {  // not a checkpoint, or half a copy of one
    }
  }
  return newest;
}

}  // namespace infeed
