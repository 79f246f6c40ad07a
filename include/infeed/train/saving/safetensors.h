#pragma once
/// Tensors in files, in the format of the Python package safetensors. More than one file: checkpoint.h.
///
///   | header bytes, u64 | {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...} | tensors |

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/base/export.h"
#include "infeed/train/saving/error.h"
#include "infeed/train/tensor/named_tensor.h"

namespace infeed {

using Metadata = std::map<std::string, std::string>;

/// What a file holds: tensors in the header's order, and texts beside them.
struct INFEED_API TensorFile {
  std::vector<NamedTensor> tensors;
  Metadata metadata;
};

struct LoadOptions {
  std::optional<DeviceId> map_location;  ///< Where the tensors go. Default: the CPU. Meta reads no tensor's bytes.
  /// Map the file instead of reading it. A mapped file must not be shortened while its tensors live: replace it
  /// instead, as save() does.
  bool mmap = true;
};

/// Writes `path`, replacing what is there in one step: a reader, or a crash, meets the old file or the new one, and a
/// failure leaves nothing behind. Returns when the file is on the disk.
/// Errors: FileError; ConfigError for a name twice, a text that is no UTF-8, a tensor without memory (meta).
INFEED_API void save(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                     const Metadata& metadata = {});

/// The file's tensors. Mapped ones view the file: pages are read when touched, and writes to the tensors stay private
/// to this process (copy on write). The mapping lives as long as one of them. All are aligned to their element: what a
/// foreign writer left unaligned is copied.
/// Errors: SafetensorError; FileError.
[[nodiscard]] INFEED_API TensorFile load(const std::filesystem::path& path, const LoadOptions& options = {});

/// The same from memory, which `owner` keeps; the tensors view it. `name` stands for the file in errors.
[[nodiscard]] INFEED_API TensorFile read_safetensors(std::span<std::byte> bytes, const std::shared_ptr<void>& owner,
                                                     std::string_view name = "the bytes");

/// The bytes of a file, piece by piece.
INFEED_API void write_safetensors(const std::function<void(std::span<const std::byte>)>& sink,
                                  const std::vector<NamedTensor>& tensors, const Metadata& metadata = {});

}  // namespace infeed
