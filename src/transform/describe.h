#pragma once
/// An image op as text for errors: "Resize(height=256, width=0)".

#include <string>

#include "infeed/transform/image.h"

namespace infeed {

[[nodiscard]] std::string describe(const ImageOp& op);

}  // namespace infeed
