#pragma once
/// Element types. Names and meanings are PyTorch's and NumPy's.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "infeed/base/export.h"

namespace infeed {

/// The numbers are written to shared memory and files: append only.
enum class DType : std::uint8_t {
  kBool = 0,
  kUInt8 = 1,
  kInt8 = 2,
  kInt16 = 3,
  kUInt16 = 4,
  kInt32 = 5,
  kUInt32 = 6,
  kInt64 = 7,
  kUInt64 = 8,
  kFloat16 = 9,
  kBFloat16 = 10,
  kFloat32 = 11,
  kFloat64 = 12,
};
inline constexpr int kNumDTypes = 13;

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t itemsize(DType dtype) noexcept {
  constexpr std::uint8_t kSizes[kNumDTypes] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8};
  return kSizes[static_cast<std::size_t>(dtype)];
}

/// "float32", "uint8", "bool", ...
[[nodiscard]] INFEED_API std::string_view to_string(DType dtype) noexcept;

/// The dtype of that name; throws ConfigError naming the known ones.
[[nodiscard]] INFEED_API DType dtype_from_string(std::string_view name);

/// True for float16, bfloat16, float32, float64.
[[nodiscard]] constexpr bool is_floating_point(DType dtype) noexcept { return dtype >= DType::kFloat16; }

namespace internal {
template <typename T>
consteval DType dtype_of_impl() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, std::uint8_t> || std::is_same_v<T, std::byte>)
    return DType::kUInt8;
  else if constexpr (std::is_same_v<T, std::int8_t>)
    return DType::kInt8;
  else if constexpr (std::is_same_v<T, std::int16_t>)
    return DType::kInt16;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return DType::kUInt16;
  else if constexpr (std::is_same_v<T, std::int32_t>)
    return DType::kInt32;
  else if constexpr (std::is_same_v<T, std::uint32_t>)
    return DType::kUInt32;
  else if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, long long>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, std::uint64_t> || std::is_same_v<T, unsigned long long>)
    return DType::kUInt64;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else {
    static_assert(std::is_same_v<T, double>, "no DType for this C++ type");
    return DType::kFloat64;
  }
}
}  // namespace internal

/// The DType of a C++ type (float16 and bfloat16 have none).
template <typename T>
inline constexpr DType dtype_of = internal::dtype_of_impl<std::remove_cv_t<T>>();

}  // namespace infeed
