#pragma once
/// Pictures in one folder a class.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/dataset/dataset.h"
#include "infeed/decode/decode.h"
#include "infeed/transform/compose.h"

namespace infeed {

/// What stays in memory after a sample's first reading.
enum class ImageCache : std::uint8_t {
  kNone,
  kPlanes  ///< decoded planes of whole pictures, shared by all workers. Needs decode.path kPlanes
};

/// "none" or "planes". Throws ConfigError.
[[nodiscard]] INFEED_API ImageCache image_cache_from_string(std::string_view name);

struct ImageFolderOptions {
  /// Default: none, uint8 [3, H, W] of each picture's own size (then use a collate).
  Compose transforms = {};
  DecodeOptions decode = {};
  /// Files whose name ends so, upper or lower case, are samples; their content decides how they are decoded.
  std::vector<std::string> extensions = {".jpg", ".jpeg", ".png"};
  /// int64 or int32. Default int64.
  DType label_dtype = DType::kInt64;
  /// A sample that is kept costs a resize: its file is neither read nor looked at again, so files must not change. The
  /// first pictures stay until the budget is used; files that are not decoded to planes are never kept. Default kNone.
  ImageCache cache = ImageCache::kNone;
  /// Bytes of memory for the cache, over all workers; taken as it fills. A 4:2:0 picture takes 1.5 bytes a pixel.
  std::uint64_t cache_bytes = 0;
  /// A file that keeps where the rows of ordinary JPEG files begin, so that only what a crop needs is decoded: about 1 %
  /// of their size. Pixels are the same. Made by the first epoch as it decodes, or by `infeed prepare`; files that
  /// changed since are noticed by size and time. "auto": in $XDG_CACHE_HOME/infeed or ~/.cache/infeed. Where it cannot
  /// be read or written a warning says so, and decoding goes on without. Default: none.
  std::string index_cache = {};
};

struct ImageCacheStats {
  std::uint64_t pictures = 0;  ///< kept
  std::uint64_t bytes = 0;     ///< used of cache_bytes
  std::uint64_t hits = 0;      ///< samples read from it, by all workers
};

/// root/CLASS/any/depth/FILE.jpg, as torchvision's ImageFolder: classes are the folders of root sorted by name
/// (bytewise), a sample's label is its class's position; within a class samples are sorted by folder, then by name.
/// Symbolic links are followed; a link back to a folder above is a ConfigError.
///
/// Fields: `image` (dtype and shape of the transforms' result), `label`, a scalar.
/// Errors: read() throws DataError naming index, path and cause.
/// Memory: about the length of the paths plus 8 bytes a file, in one block, shared by forked workers for good; the
/// cache, if there is one.
class INFEED_API ImageFolder final : public Dataset {
 public:
  /// Reads the folders' lists, not the files. Throws ConfigError where root or a folder cannot be read, there is no
  /// class, or a class has no file (all such are named), or where cache and cache_bytes contradict the rest or the
  /// machine.
  explicit ImageFolder(const std::string& root, ImageFolderOptions options = {});
  ~ImageFolder() override;

  [[nodiscard]] std::int64_t size() const override;
  [[nodiscard]] const Schema& schema() const override { return schema_; }
  void read(Row& row) const override;
  /// Hands the list of files over in a sealed memory file: a spawned worker does not walk the folders.
  [[nodiscard]] std::optional<DatasetSpec> spec() const override;
  /// The file's path.
  [[nodiscard]] std::string describe(std::int64_t index) const override;

  [[nodiscard]] std::vector<std::string> classes() const;  ///< names, by label
  /// Path and label of a sample. Throws IndexError.
  [[nodiscard]] std::string path(std::int64_t index) const;
  [[nodiscard]] std::int64_t label(std::int64_t index) const;
  /// All paths: a copy, for small folders.
  [[nodiscard]] std::vector<std::string> paths() const;
  /// Of all workers together; zeros without a cache.
  [[nodiscard]] ImageCacheStats cache_stats() const;

  /// From the params of spec(), or {"root": ...} and any of its other keys. Without "fds" the folders are walked
  /// again, and a list that differs from "digest" is a ConfigError.
  [[nodiscard]] static std::unique_ptr<ImageFolder> from_params(const State& params);

 private:
  struct Files;
  ImageFolder(std::string root, ImageFolderOptions options, std::unique_ptr<Files> files);

  std::string root_;
  ImageFolderOptions options_;
  Schema schema_;
  std::unique_ptr<Files> files_;
};

}  // namespace infeed
