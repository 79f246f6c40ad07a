#pragma once
/// A folder that comes into being whole: filled beside its final place, then renamed.

#include <filesystem>
#include <string>
#include <vector>

namespace demo {

/// Makes `root`.partial-<n> and its missing parents, locked against other processes; removes them again unless
/// commit() was reached. Throws ImageSetError (make_images.h) with path, cause and advice.
class Staging {
 public:
  explicit Staging(const std::filesystem::path& root);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  [[nodiscard]] const std::filesystem::path& folder() const noexcept { return folder_; }
  void make_folder(const std::filesystem::path& below) const;
  /// Writes a whole file. Threads: any, on different files.
  void write_file(const std::filesystem::path& below, const void* data, std::size_t bytes) const;
  /// Renames the folder to root; what stood there, empty or not, is removed after. The caller knows it may go.
  void commit();

 private:
  void remove_leftovers() const;

  std::filesystem::path root_, folder_;
  std::vector<std::filesystem::path> made_parents_;  ///< innermost first
  int lock_fd_ = -1;
  bool committed_ = false;
};

}  // namespace demo
