#pragma once
/// A picture as a JPEG file of a wanted size.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "draw.h"

namespace demo {

/// Quality 90, 4:2:0, baseline. Keeps its handle and buffers from picture to picture. One owner, one thread.
class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  /// Adds as much grain as gives a file of about `target_bytes` (within 5 %, if some grain does). The result depends on
  /// the arguments only. Throws std::runtime_error where libjpeg fails.
  [[nodiscard]] std::vector<std::uint8_t> encode(const Picture& picture, std::size_t target_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace demo
