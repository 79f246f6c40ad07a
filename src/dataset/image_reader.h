#pragma once
/// One thread's way from a file to a row.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

 private:
  void reserve(std::size_t nbytes);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t capacity_ = 0;
};

/// The planes that `plan` needs of the open picture; nullopt where its pixels are to be taken.
[[nodiscard]] std::optional<PlaneWindow> decode_planes_if_asked(Decoder& decoder, const FusedPlan& plan,
                                                                const DecodeOptions& options);

/// Decoder, kernel and buffers are kept from picture to picture. One owner, one thread.
class ImageReader {
 public:
  /// Reads, decodes and transforms the picture at `path` into field 0 of `row`; a variable field gets its size. Adds to
  /// the row's stage times. With a `cache`, a picture that it has is not read, and one that it wants is put in. Throws
  /// DecodeError and DataError, without the sample's index.
  void read(const std::string& path, const Compose& transforms, const DecodeOptions& options, Row& row,
            PlaneCache* cache = nullptr);

 private:
  template <typename Picture>
  void write(const Compose& transforms, const FusedPlan& plan, const Picture& picture, Row& row);

  std::vector<std::byte> record_;  // of the cache
  FileBuffer file_;
  Decoder decoder_;
  FusedKernel kernel_;
};

}  // namespace infeed
