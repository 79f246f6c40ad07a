#include "base/whole_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "infeed/base/error.h"

namespace infeed {
namespace {

namespace fs = std::filesystem;

/// Where the bytes go first, and what that is renamed to. They are equal where nothing may be replaced.
struct Place {
  fs::path written, target;
};

Place place_of(const std::string& path) {
  std::error_code none;
  if (!fs::exists(path, none)) return {path + ".part", path};
  if (!fs::is_regular_file(path, none)) return {path, path};
  const fs::path target = fs::canonical(path, none);
  return {target.string() + ".part", target};
}

[[noreturn]] void fail(const std::string& path, std::string_view what, int cause) {
  throw DataError(fmt::format("{} cannot be written to {}: {}.", what, path, std::strerror(cause)));
}

}  // namespace

void write_whole_file(const std::string& path, std::string_view bytes, std::string_view what) {
  const Place place = place_of(path);
  errno = 0;
  std::ofstream file(place.written, std::ios::binary);
  file << bytes;
  file.close();
  if (file && (place.written == place.target || std::rename(place.written.c_str(), place.target.c_str()) == 0)) return;
  const int cause = errno;
  std::error_code none;
  if (place.written != place.target) fs::remove(place.written, none);
  fail(path, what, cause);
}

void check_whole_file(const std::string& path, std::string_view what) {
  const Place place = place_of(path);
  std::error_code none;
  if (fs::is_directory(path, none)) fail(path, what, EISDIR);
  const fs::path folder = place.target.has_parent_path() ? place.target.parent_path() : ".";
  if (access((place.written == place.target ? place.target : folder).c_str(), W_OK) != 0) fail(path, what, errno);
}

}  // namespace infeed
