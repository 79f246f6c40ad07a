#pragma once
/// Elements of any dtype as a wide C++ type, and back.

#include <type_traits>

#include "base/half.h"
#include "infeed/base/dtype.h"

namespace infeed::kernels {

struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

template <class Wide, class T>
Wide widen(T value) noexcept {
  if constexpr (std::is_same_v<T, Float16>)
    return static_cast<Wide>(float16_to_float(value.bits));
  else if constexpr (std::is_same_v<T, BFloat16>)
    return static_cast<Wide>(bfloat16_to_float(value.bits));
  else
    return static_cast<Wide>(value);
}

template <class T, class Wide>
T narrow(Wide value) noexcept {
  if constexpr (std::is_same_v<T, Float16>)
    return {float_to_float16(static_cast<float>(value))};
  else if constexpr (std::is_same_v<T, BFloat16>)
    return {float_to_bfloat16(static_cast<float>(value))};
  else if constexpr (std::is_same_v<T, bool>)
    return value != Wide{0};
  else if constexpr (std::is_floating_point_v<Wide> && std::is_unsigned_v<T> && sizeof(T) < 8)
    return static_cast<T>(static_cast<std::int64_t>(value));  // a negative value wraps, as in PyTorch
  else
    return static_cast<T>(value);
}

/// Calls f(T{}) with the element type of `dtype`.
template <class F>
void with_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kBool: return f(bool{});
    case DType::kUInt8: return f(std::uint8_t{});
    case DType::kInt8: return f(std::int8_t{});
    case DType::kInt16: return f(std::int16_t{});
    case DType::kUInt16: return f(std::uint16_t{});
    case DType::kInt32: return f(std::int32_t{});
    case DType::kUInt32: return f(std::uint32_t{});
    case DType::kInt64: return f(std::int64_t{});
    case DType::kUInt64: return f(std::uint64_t{});
    case DType::kFloat16: return f(Float16{});
    case DType::kBFloat16: return f(BFloat16{});
    case DType::kFloat32: return f(float{});
    case DType::kFloat64: return f(double{});
  }
}

/// Reads `n` elements of a dtype, `stride` bytes apart, as Wide.
template <class Wide>
using Load = void (*)(Wide* buffer, const std::byte* from, std::int64_t stride, std::int64_t n);
template <class Wide>
using Store = void (*)(std::byte* to, std::int64_t stride, const Wide* buffer, std::int64_t n);

/// For float, double and int64.
template <class Wide>
[[nodiscard]] Load<Wide> loader(DType dtype);
template <class Wide>
[[nodiscard]] Store<Wide> storer(DType dtype);

/// The type in which elements of `dtype` are computed: f(float), f(double) or f(std::int64_t).
template <class F>
void with_compute(DType dtype, F&& f) {
  if (dtype == DType::kFloat64) return f(double{});
  if (is_floating_point(dtype)) return f(float{});
  return f(std::int64_t{});
}

}  // namespace infeed::kernels
