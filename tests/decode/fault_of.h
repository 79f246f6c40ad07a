#pragma once
/// The fault with which bytes fail to decode, for EXPECT_EQ.

#include <optional>
#include <span>
#include <string>

#include "decode/decoder.h"

namespace infeed::testing {

/// nullopt where the whole picture decodes; the message goes to `*text` where given.
inline std::optional<DecodeFault> fault_of(std::span<const std::byte> bytes, const DecodeOptions& options = {},
                                           std::string* text = nullptr) {
  try {
    static_cast<void>(decode_image(bytes, options));
  } catch (const DecodeError& error) {
    if (text != nullptr) *text = error.what();
    return error.fault();
  }
  return std::nullopt;
}

}  // namespace infeed::testing
