#pragma once
/// PNG by libpng.

#include <memory>

#include "decode/picture_source.h"

namespace infeed {

/// Rows are read up to the window's last one; an interlaced picture is decoded whole.
class PngSource final : public PictureSource {
 public:
  PngSource();
  ~PngSource() override;
  PngSource(const PngSource&) = delete;
  PngSource& operator=(const PngSource&) = delete;

  StoredInfo open(std::span<const std::byte> bytes, const DecodeOptions& options) override;
  PixelWindow decode(const Window& window, int out_width, int out_height, PixelBuffer& buffer) override;

 private:
  struct State;  // libpng's header stays out of this one
  std::unique_ptr<State> state_;
};

}  // namespace infeed
