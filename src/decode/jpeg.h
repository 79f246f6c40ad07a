#pragma once
/// JPEG by libjpeg-turbo: the window that is needed, and no more.

#include <memory>

#include "decode/picture_source.h"

namespace infeed {

class JpegSource final : public PictureSource {
 public:
  JpegSource();
  ~JpegSource() override;
  JpegSource(const JpegSource&) = delete;
  JpegSource& operator=(const JpegSource&) = delete;

  StoredInfo open(std::span<const std::byte> bytes, const DecodeOptions& options) override;
  PixelWindow decode(const Window& window, int out_width, int out_height, PixelBuffer& buffer) override;

 private:
  struct State;  // libjpeg's headers stay out of this one
  std::unique_ptr<State> state_;
};

}  // namespace infeed
