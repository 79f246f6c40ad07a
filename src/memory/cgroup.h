#pragma once
/// The control groups that this process is in, version 1 and 2, and the files of each group up to the mount's root.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace infeed {

/// One folder of a hierarchy that limits this process: its own group, or one that contains it.
struct CgroupFolder {
  std::string path;  ///< with the test root in front
  bool v2 = false;
};

/// The groups of this process, read once.
class Cgroups {
 public:
  /// `root` is put in front of /proc and of the folders.
  explicit Cgroups(const std::string& root);
  /// The groups whose `controller` ("memory", "cpu") rules this process, innermost first; v1 and v2 hierarchies both.
  /// A container sees only what is mounted: where its path is not below the mount's root, the mount point is its group.
  [[nodiscard]] std::vector<CgroupFolder> of(const std::string& controller) const;

 private:
  struct Mount {
    std::string root;   ///< the folder of the hierarchy that is mounted
    std::string point;  ///< where
    bool v2 = false;
    std::string options;  ///< of the file system: v1 names its controllers here
  };
  static std::optional<Mount> parse_mount(const std::string& line);

  std::string root_;
  std::vector<Mount> mounts_;
  std::vector<std::string> groups_;  ///< lines of /proc/self/cgroup
};

/// Whole text of a small file; nullopt if it cannot be read.
[[nodiscard]] std::optional<std::string> read_text(const std::string& path);
/// First number in the file; nullopt if there is none ("max").
[[nodiscard]] std::optional<std::int64_t> read_number(const std::string& path);
/// Number after `key` in a file of "key number" lines ("key:" too).
[[nodiscard]] std::optional<std::int64_t> read_keyed_number(const std::string& path, const std::string& key);

}  // namespace infeed
