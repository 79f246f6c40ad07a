#include "tools/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "dataset/index_cache.h"
#include "infeed/base/error.h"
#include "tools/prepare_parts.h"

namespace infeed {
namespace {

bool is_tar(const std::string& path) { return path.ends_with(".tar") && !std::filesystem::is_directory(path); }

std::string without_slash(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void check(const PrepareOptions& options) {
  const bool rewrites = options.transcode || options.restart_megapixels > 0 || options.shorter_side > 0;
  if (rewrites != !options.out.empty())
    throw ConfigError(rewrites
                          ? "pictures are never rewritten in place: say where to with --out."
                          : "--out needs what is to be made there: --transcode, --restart-rows or --shorter-side.");
  if (options.shorter_side < 0 || options.quality < 1 || options.quality > 100 || options.threads < 0)
    throw ConfigError(fmt::format("--shorter-side {}, --quality {}, --threads {}: 1 or more, 1 to 100, 0 or more.",
                                  options.shorter_side, options.quality, options.threads));
  if (options.index.empty() || (options.index != "auto" && is_tar(options.path)))
    throw ConfigError(
        fmt::format("--index is '{}': it names the file for a folder's index; a tar file's is its own name "
                    "with .idx.",
                    options.index));
  if (options.out.empty()) return;
  if (is_tar(options.path)) throw ConfigError("pictures in tar files are indexed, not rewritten: unpack them first.");
  const std::string from = std::filesystem::weakly_canonical(options.path).string() + '/';
  const std::string to = std::filesystem::weakly_canonical(options.out).string() + '/';
  if (to.starts_with(from) || from.starts_with(to))
    throw ConfigError(
        fmt::format("'{}' and '{}' lie within each other; choose a folder beside.", options.path, options.out));
}

std::string index_path(const PrepareOptions& options) {
  if (is_tar(options.path)) return options.path.substr(0, options.path.size() - 4) + ".idx";
  if (options.index != "auto") return options.index;
  std::string path = automatic_index_path(options.path);
  if (path.empty()) throw ConfigError("--index auto needs XDG_CACHE_HOME or HOME; name a file instead.");
  return path;
}

}  // namespace

PrepareSummary prepare(const PrepareOptions& given, const std::atomic<bool>& stop, const PrepareProgress& progress) {
  PrepareOptions options = given;
  options.path = without_slash(options.path);
  check(options);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<Picture> pictures = is_tar(options.path) ? pictures_of_tar(options.path, options.extensions)
                                                             : pictures_of_folder(options.path, options.extensions);
  if (pictures.empty()) throw ConfigError(fmt::format("'{}' has no pictures.", options.path));
  PrepareSummary summary;
  summary.pictures = static_cast<std::int64_t>(pictures.size());
  if (options.out.empty()) {
    summary.index = index_path(options);
    index_pictures(pictures, summary.index, options, stop, progress, summary);
  } else {
    rewrite_pictures(pictures, options, stop, progress, summary);
  }
  std::sort(summary.failed.begin(), summary.failed.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  summary.interrupted = stop;
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return summary;
}

}  // namespace infeed
