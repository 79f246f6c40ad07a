#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "dataset/file_list.h"
#include "infeed/base/error.h"

namespace infeed {
namespace {

using FileId = std::pair<dev_t, ino_t>;

struct Folder {
  std::string path;  ///< below root
  std::vector<std::string> files;
};

struct Listing {
  std::vector<std::string> folders;
  std::vector<std::string> files;
};

[[noreturn]] void throw_unreadable(const std::string& path) {
  throw ConfigError(fmt::format("folder '{}' cannot be read: {}.", path, std::strerror(errno)));
}

/// As Python's DirEntry.is_dir(): links are followed, what cannot be looked at is no folder.
bool is_folder(const std::string& path, const dirent& entry) {
  if (entry.d_type == DT_DIR) return true;
  if (entry.d_type != DT_LNK && entry.d_type != DT_UNKNOWN) return false;
  struct stat status {};
  return stat((path + '/' + entry.d_name).c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

Listing list_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path.c_str()), closedir);
  if (dir == nullptr) throw_unreadable(path);
  Listing listing;
  errno = 0;
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") (is_folder(path, *entry) ? listing.folders : listing.files).emplace_back(name);
    errno = 0;
  }
  if (errno != 0) throw_unreadable(path);
  return listing;
}

class Walk {
 public:
  Walk(const std::string& root, std::span<const std::string> extensions) : root_(root), extensions_(extensions) {}

  void visit(const std::string& path) {
    const std::string full = root_ + '/' + path;
    struct stat status {};
    if (stat(full.c_str(), &status) != 0) throw_unreadable(full);
    const FileId id{status.st_dev, status.st_ino};
    if (std::find(above_.begin(), above_.end(), id) != above_.end())
      throw ConfigError(
          fmt::format("folder '{}' is a link to a folder above it: its files would be counted without end. "
                      "Remove the link.",
                      full));
    above_.push_back(id);
    Listing listing = list_folder(full);
    std::erase_if(listing.files, [&](const std::string& name) { return !has_extension(name, extensions_); });
    std::sort(listing.files.begin(), listing.files.end());
    if (!listing.files.empty()) found_.push_back({path, std::move(listing.files)});
    for (const std::string& name : listing.folders) visit(fmt::format("{}/{}", path, name));
    above_.pop_back();
  }

  /// torchvision sorts what os.walk yields: by the folder's whole path ("a-b" comes before "a/b").
  std::vector<std::string> sorted() && {
    std::sort(found_.begin(), found_.end(), [](const Folder& a, const Folder& b) { return a.path < b.path; });
    std::vector<std::string> paths;
    for (const Folder& folder : found_) {
      for (const std::string& name : folder.files) paths.push_back(folder.path + '/' + name);
    }
    return paths;
  }

 private:
  const std::string& root_;
  std::span<const std::string> extensions_;
  std::vector<FileId> above_;  ///< from the class down to the folder in hand
  std::vector<Folder> found_;
};

}  // namespace

bool has_extension(std::string_view name, std::span<const std::string> extensions) {
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a + ('a' - 'A') : a) == b; };
  return std::any_of(extensions.begin(), extensions.end(), [&](const std::string& extension) {
    return name.size() >= extension.size() &&
           std::equal(extension.begin(), extension.end(), name.end() - static_cast<std::ptrdiff_t>(extension.size()),
                      [&](char wanted, char found) { return same(found, wanted); });
  });
}

std::vector<std::string> list_classes(const std::string& root) {
  std::vector<std::string> classes = list_folder(root).folders;
  if (classes.empty())
    throw ConfigError(fmt::format("folder '{}' has no folder in it; an ImageFolder needs one a class.", root));
  std::sort(classes.begin(), classes.end());
  return classes;
}

std::vector<std::string> walk_class(const std::string& root, const std::string& name,
                                    std::span<const std::string> extensions) {
  Walk walk(root, extensions);
  walk.visit(name);
  return std::move(walk).sorted();
}

}  // namespace infeed
