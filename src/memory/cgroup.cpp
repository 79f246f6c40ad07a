#include "memory/cgroup.h"

#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>

namespace infeed {
namespace {

bool has_item(std::string_view list, std::string_view item) {
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(',', from), list.size());
    if (list.substr(from, to - from) == item) return true;
    from = to + 1;
  }
  return false;
}

/// mountinfo writes blanks in names as \040.
std::string unescape(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int code = 0;
    const bool escaped = text[i] == '\\' && i + 3 < text.size() &&
                         std::from_chars(&text[i + 1], &text[i + 1] + 3, code, 8).ptr == &text[i + 1] + 3;
    plain += escaped ? static_cast<char>(code) : text[i];
    if (escaped) i += 3;
  }
  return plain;
}

/// Path of the group below the mount point: "" or "/a/b".
std::string below_mount(const std::string& group, const std::string& mount_root) {
  const std::string prefix = mount_root == "/" ? "" : mount_root;
  const bool inside =
      group.compare(0, prefix.size(), prefix) == 0 && (group.size() == prefix.size() || group[prefix.size()] == '/');
  if (!inside || group.find("/..") != std::string::npos) return "";
  const std::string below = group.substr(prefix.size());
  return below == "/" ? "" : below;
}

void add_folders_up(std::vector<CgroupFolder>& folders, const std::string& point, std::string below, bool v2) {
  for (;; below.resize(below.rfind('/'))) {
    folders.push_back({point + below, v2});
    if (below.empty()) return;
  }
}

}  // namespace

Cgroups::Cgroups(const std::string& root) : root_(root) {
  std::ifstream mounts(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    if (auto mount = parse_mount(line)) mounts_.push_back(std::move(*mount));
  }
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) groups_.push_back(std::move(line));
}

/// "36 35 98:0 ROOT POINT opts tag:1 - cgroup2 source options"
std::optional<Cgroups::Mount> Cgroups::parse_mount(const std::string& line) {
  const std::size_t dash = line.find(" - cgroup");
  if (dash == std::string::npos) return std::nullopt;
  std::istringstream before(line.substr(0, dash)), after(line.substr(dash + 3));
  std::string skip, type, source;
  Mount mount;
  before >> skip >> skip >> skip >> mount.root >> mount.point;
  after >> type >> source >> mount.options;
  if (type != "cgroup" && type != "cgroup2") return std::nullopt;
  mount.v2 = type == "cgroup2";
  mount.root = unescape(mount.root);
  mount.point = unescape(mount.point);
  return mount;
}

std::vector<CgroupFolder> Cgroups::of(const std::string& controller) const {
  std::vector<CgroupFolder> folders;
  for (const std::string& line : groups_) {  // "4:memory:/a/b", "0::/a/b"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool v2 = controllers.empty();
    if (!v2 && !has_item(controllers, controller)) continue;
    for (const Mount& mount : mounts_) {
      if (mount.v2 != v2 || (!v2 && !has_item(mount.options, controller))) continue;
      add_folders_up(folders, root_ + mount.point, below_mount(line.substr(second + 1), mount.root), v2);
    }
  }
  return folders;
}

std::optional<std::string> read_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<std::int64_t> read_number(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> read_keyed_number(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::int64_t number = 0;
    if (words >> name >> number && (name == key || name == key + ":")) return number;
  }
  return std::nullopt;
}

}  // namespace infeed
