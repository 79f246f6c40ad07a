#pragma once
/// The files of an ImageFolder in one block, which is also what crosses to spawned workers:
///
///   | Header 64 B | class_end u64[num_classes] | name_end u64[num_classes + num_files] | names |
///
///   Header   0  magic "IFL1"   8  num_classes   16  num_files   24  names_bytes   32  zero
///   class_end[c]: files of classes 0 to c       name_end[i]: end of name i in names, where classes' names come first,
///   then the files' paths below the root        names: neither separated nor terminated

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace infeed {

/// Whether name ends in one of the extensions (".jpg"), in capitals or not, as torchvision asks it.
[[nodiscard]] bool has_extension(std::string_view name, std::span<const std::string> extensions);

/// Sorted as torchvision's ImageFolder does. Immutable. Threads: const use from any.
class FileList {
 public:
  /// Walks root. Throws ConfigError (see ImageFolder).
  [[nodiscard]] static FileList scan(const std::string& root, std::span<const std::string> extensions);
  /// A list that another process made; `owner` keeps `block` alive. Throws ConfigError where it is none.
  [[nodiscard]] static FileList view(std::span<const std::byte> block, std::shared_ptr<const void> owner);

  [[nodiscard]] std::int64_t size() const noexcept { return num_files_; }
  [[nodiscard]] std::int64_t num_classes() const noexcept { return num_classes_; }
  [[nodiscard]] std::string_view class_name(std::int64_t c) const noexcept { return name(c); }
  /// Path below the root, of file `index` in [0, size()).
  [[nodiscard]] std::string_view path(std::int64_t index) const noexcept { return name(num_classes_ + index); }
  [[nodiscard]] std::int64_t label(std::int64_t index) const noexcept;

  [[nodiscard]] std::span<const std::byte> block() const noexcept { return block_; }
  /// Differs, in practice, between different lists.
  [[nodiscard]] std::uint64_t digest() const noexcept;

 private:
  FileList(std::span<const std::byte> block, std::shared_ptr<const void> owner);
  [[nodiscard]] std::string_view name(std::int64_t i) const noexcept;

  std::shared_ptr<const void> owner_;
  std::span<const std::byte> block_;
  std::int64_t num_classes_ = 0;
  std::int64_t num_files_ = 0;
  std::span<const std::uint64_t> class_end_;
  std::span<const std::uint64_t> name_end_;
  const char* names_ = nullptr;
};

/// The files of class folder root/name, in order, with paths below root. Throws ConfigError.
[[nodiscard]] std::vector<std::string> walk_class(const std::string& root, const std::string& name,
                                                  std::span<const std::string> extensions);
/// The folders of root, sorted. Throws ConfigError.
[[nodiscard]] std::vector<std::string> list_classes(const std::string& root);

}  // namespace infeed
