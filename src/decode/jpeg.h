#pragma once
/// JPEG: the window that is needed, and no more. Ordinary baseline files by our own decoder, the rest by libjpeg-turbo.

#include <memory>

#include "decode/picture_source.h"

namespace infeed {

class JpegSource final : public PictureSource {
 public:
  /// `by_libjpeg`: every file, for comparison; the pixels are the same.
  explicit JpegSource(bool by_libjpeg = false);
  ~JpegSource() override;
  JpegSource(const JpegSource&) = delete;
  JpegSource& operator=(const JpegSource&) = delete;

  StoredInfo open(std::span<const std::byte> bytes, const DecodeOptions& options) override;
  PixelWindow decode(const Window& window, int out_width, int out_height, PixelBuffer& buffer) override;
  void use_index(RowIndex* index) override;
  [[nodiscard]] std::size_t head_bytes() const override;
  std::optional<PlaneWindow> decode_planes(const Window& window) override;

 private:
  struct State;  // libjpeg's headers stay out of this one
  std::unique_ptr<State> state_;
};

}  // namespace infeed
