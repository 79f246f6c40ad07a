#include "infeed/base/dtype.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "infeed/base/error.h"

namespace infeed {
namespace {

constexpr std::array<std::string_view, kNumDTypes> kNames = {"bool",     "uint8",   "int8",   "int16",  "uint16",
                                                             "int32",    "uint32",  "int64",  "uint64", "float16",
                                                             "bfloat16", "float32", "float64"};

}  // namespace

std::string_view to_string(DType dtype) noexcept { return kNames[static_cast<std::size_t>(dtype)]; }

DType dtype_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  throw ConfigError(fmt::format("unknown dtype '{}'. Known: {}.", name, fmt::join(kNames, ", ")));
}

}  // namespace infeed
