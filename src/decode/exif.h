#pragma once
/// The one EXIF field a loader needs: which way up the camera was held.

#include <cstddef>
#include <span>

namespace infeed {

/// Orientation 1..8 from a TIFF block (what follows "Exif\0\0" in a JPEG's APP1, or a PNG's eXIf chunk). Looks at IFD0
/// only, so a thumbnail's own orientation does not count. Anything missing, cut or out of range gives 1.
[[nodiscard]] int tiff_orientation(std::span<const std::byte> tiff) noexcept;

/// The TIFF block of a PNG's eXIf chunk, wherever it stands; empty if there is none.
[[nodiscard]] std::span<const std::byte> find_png_exif(std::span<const std::byte> png) noexcept;

}  // namespace infeed
