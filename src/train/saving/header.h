#pragma once
/// The header of a safetensors file. It needs no Tensor: the fuzzer links it alone.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "infeed/base/dtype.h"
#include "infeed/base/shape.h"

namespace infeed::saving {

/// As the package safetensors.
inline constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;
inline constexpr std::string_view kMetadata = "__metadata__";

/// One tensor. `offset` counts from Header::begin.
struct Entry {
  std::string name;
  DType dtype = DType::kUInt8;
  Shape shape;
  std::uint64_t offset = 0;
  std::uint64_t nbytes = 0;
};

struct Header {
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::uint64_t begin = 0;  ///< where the tensors begin in the file
};

/// Throws SafetensorError unless the entries fill the rest of the file, each byte once.
[[nodiscard]] Header parse_header(std::span<const std::byte> file, std::string_view file_name);

/// Length and text, padded so that the tensors begin at a multiple of 64. ConfigError for texts that are not UTF-8.
[[nodiscard]] std::string header_text(const Header& header);

}  // namespace infeed::saving
