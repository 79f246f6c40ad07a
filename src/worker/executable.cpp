#include "worker/executable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/library_folder.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

namespace fs = std::filesystem;

std::string checked(const std::string& path, const char* source) {
  if (::access(path.c_str(), X_OK) != 0)
    throw ConfigError(fmt::format("{} names \"{}\", which is not an executable file. Name infeed-worker of this build.",
                                  source, path));
  return path;
}

}  // namespace

std::string find_worker_executable(const std::string& option) {
  if (!option.empty()) return checked(option, "worker_executable");
  if (const char* path = std::getenv("INFEED_WORKER"); path != nullptr && *path != '\0')
    return checked(path, "INFEED_WORKER");
  std::vector<std::string> tried;
  const fs::path folder = library_folder();
  // One level more for lib/<architecture>.
  for (const char* place : {"../libexec/infeed", "../../libexec/infeed", ".", "bin", "../bin", "../../bin"}) {
    tried.push_back((folder / place / "infeed-worker").lexically_normal().string());
    if (::access(tried.back().c_str(), X_OK) == 0) return tried.back();
  }
  throw ConfigError(
      fmt::format("infeed-worker, which worker_kind kSpawn starts, is none of {}. Install it beside the "
                  "library, or set worker_executable or INFEED_WORKER to its path.",
                  fmt::join(tried, ", ")));
}

}  // namespace infeed
