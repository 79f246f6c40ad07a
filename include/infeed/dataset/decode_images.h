#pragma once
/// Pictures that are at hand, decoded and transformed side by side: no dataset, no loader.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "infeed/base/export.h"
#include "infeed/base/shape.h"
#include "infeed/decode/decode.h"
#include "infeed/transform/compose.h"

namespace infeed {

/// A file's path or, where that is empty, its bytes; borrowed for the length of the call.
struct ImageSource {
  std::string path;
  std::span<const std::byte> bytes;
};

struct DecodeImagesOptions {
  Compose transforms = {};
  DecodeOptions decode = {};
  /// Pictures decoded at a time, the caller's thread among them. Default 1; 0: as many as the process may use CPUs.
  int threads = 1;
  /// Of the transforms: picture i draws what a loader of this seed draws for sample i of epoch 0.
  std::uint64_t seed = 0;
};

/// Memory for the result of picture `i`: C-contiguous, of the transforms' dtype and of `shape` in their layout. Called
/// from several threads at once; once a picture, when its header was read.
using ImageStore = std::function<std::byte*(std::size_t i, const Shape& shape)>;

/// Throws what the first picture that fails (by position) failed by, DecodeError or DataError (a file that cannot be
/// read), with its path or position; the others may have been written.
INFEED_API void decode_images(std::span<const ImageSource> sources, const DecodeImagesOptions& options,
                              const ImageStore& store);

}  // namespace infeed
