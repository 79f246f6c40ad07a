#pragma once
/// What saving and loading throw.

#include <filesystem>
#include <string>
#include <utility>

#include "infeed/base/error.h"
#include "infeed/base/export.h"

namespace infeed {

/// A file that is no safetensors file, or lies about what it holds; names file, tensor and values.
class INFEED_API SafetensorError final : public Error {
 public:
  using Error::Error;
  ~SafetensorError() override;
};

/// The system refused to read or write.
class INFEED_API FileError final : public Error {
 public:
  /// "'run/x' cannot be written: No space left on device"
  FileError(std::filesystem::path path, const char* what, int code);
  ~FileError() override;
  [[nodiscard]] int code() const noexcept { return code_; }  ///< errno
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  int code_;
};

}  // namespace infeed
