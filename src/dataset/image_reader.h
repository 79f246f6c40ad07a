#pragma once
/// One thread's way from a file to a row.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/index_cache.h"
#include "dataset/plane_cache.h"
#include "decode/decoder.h"
#include "infeed/batch/row.h"
#include "infeed/transform/compose.h"
#include "transform/fused.h"

namespace infeed {

/// A file's bytes; the memory is kept from file to file, and given back some time after a giant. One owner, one thread.
class FileBuffer {
 public:
  /// Reads the whole file; a giant only where it begins as a picture does. Throws DataError with the system's cause,
  /// DecodeError; never blocks on a pipe or a device.
  std::span<const std::byte> read(const std::string& path);

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// When the file last read was last written, in ns since 1970.
  [[nodiscard]] std::int64_t mtime_ns() const noexcept { return mtime_ns_; }

 private:
  void reserve(std::size_t nbytes);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
  std::int64_t mtime_ns_ = 0;
};

/// What is known of pictures from their earlier readings; null: nothing is kept.
struct Kept {
  PlaneCache* planes = nullptr;
  const IndexCache* index = nullptr;
  std::string_view name;  ///< of this picture in the index
};

/// The planes that `plan` needs of the open picture; nullopt where its pixels are to be taken.
[[nodiscard]] std::optional<PlaneWindow> decode_planes_if_asked(Decoder& decoder, const FusedPlan& plan,
                                                                const DecodeOptions& options);

/// Decoder, kernel and buffers are kept from picture to picture. One owner, one thread.
class ImageReader {
 public:
  /// Reads, decodes and transforms the picture at `path` into field 0 of `row`; a variable field gets its size. Adds to
  /// the row's stage times. A picture whose planes are kept is not read; what others teach is kept. Throws DecodeError
  /// and DataError, without the sample's index.
  void read(const std::string& path, const Compose& transforms, const DecodeOptions& options, Row& row,
            const Kept& kept = {});

 private:
  template <typename Picture>
  void write(const Compose& transforms, const FusedPlan& plan, const Picture& picture, Row& row);

  void use_index(const Kept& kept, std::span<const std::byte> bytes, std::int64_t sample);
  void keep_index(const Kept& kept, const ImageInfo& info, std::int64_t sample);

  std::vector<std::byte> record_;  // of the planes
  IndexRecord index_;
  std::size_t num_known_ = 0;  // of it, before the decode
  FileBuffer file_;
  Decoder decoder_;
  FusedKernel kernel_;
};

}  // namespace infeed
