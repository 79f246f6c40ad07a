#pragma once
/// Errors with values: texts are formatted only when they are needed.

#include <fmt/format.h>

#include <string>

#include "infeed/base/shape.h"
#include "infeed/train/tensor/error.h"
#include "infeed/train/tensor/options.h"

/// "[2, 3]"
template <>
struct fmt::formatter<infeed::Shape> : fmt::formatter<std::string> {
  auto format(const infeed::Shape& shape, format_context& context) const {
    return fmt::formatter<std::string>::format(shape.str(), context);
  }
};
/// "Float"
template <>
struct fmt::formatter<infeed::DType> : fmt::formatter<std::string_view> {
  auto format(infeed::DType dtype, format_context& context) const {
    return fmt::formatter<std::string_view>::format(infeed::scalar_type_name(dtype), context);
  }
};

namespace infeed {

/// Throws E with the text unless `condition` holds.
template <class E = RuntimeError, class... Args>
void require(bool condition, fmt::format_string<const Args&...> text, const Args&... args) {
  if (!condition) [[unlikely]]
    throw E(fmt::format(text, args...));
}

}  // namespace infeed
