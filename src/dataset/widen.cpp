#include "dataset/widen.h"

#include <array>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/half.h"

namespace infeed {
namespace {

/// How a dtype lies in memory, and which values it has: `digits` significant bits, a sign or none, and a largest
/// exponent. float16 reaches below bfloat16 and float32 nowhere that float32 does not reach too.
template <DType kType>
struct Element;

template <typename T, bool kFloating = std::is_floating_point_v<T>>
struct Plain {
  using Stored = T;
  using Value = T;
  static constexpr bool floating = kFloating;
  static constexpr bool has_sign = std::is_signed_v<T>;
  static constexpr int digits = std::numeric_limits<T>::digits;
  static constexpr int max_exponent = kFloating ? std::numeric_limits<T>::max_exponent : digits;
  static Value load(Stored stored) noexcept { return stored; }
  template <typename From>
  static Stored store(From value) noexcept {
    return static_cast<T>(value);
  }
};
template <>
struct Element<DType::kBool> : Plain<bool> {
  using Stored = std::uint8_t;  // arrays from elsewhere may hold other bytes than 0 and 1
  static bool load(Stored stored) noexcept { return stored != 0; }
};
template <>
struct Element<DType::kUInt8> : Plain<std::uint8_t> {};
template <>
struct Element<DType::kInt8> : Plain<std::int8_t> {};
template <>
struct Element<DType::kInt16> : Plain<std::int16_t> {};
template <>
struct Element<DType::kUInt16> : Plain<std::uint16_t> {};
template <>
struct Element<DType::kInt32> : Plain<std::int32_t> {};
template <>
struct Element<DType::kUInt32> : Plain<std::uint32_t> {};
template <>
struct Element<DType::kInt64> : Plain<std::int64_t> {};
template <>
struct Element<DType::kUInt64> : Plain<std::uint64_t> {};
template <>
struct Element<DType::kFloat32> : Plain<float> {};
template <>
struct Element<DType::kFloat64> : Plain<double> {};
template <>
struct Element<DType::kFloat16> : Plain<float> {
  using Stored = std::uint16_t;
  static constexpr int digits = 11;
  static constexpr int max_exponent = 16;
  static float load(Stored stored) noexcept { return float16_to_float(stored); }
  template <typename From>
  static Stored store(From value) noexcept {
    return float_to_float16(static_cast<float>(value));
  }
};
template <>
struct Element<DType::kBFloat16> : Plain<float> {
  using Stored = std::uint16_t;
  static constexpr int digits = 8;
  static float load(Stored stored) noexcept { return bfloat16_to_float(stored); }
  template <typename From>
  static Stored store(From value) noexcept {
    return float_to_bfloat16(static_cast<float>(value));
  }
};

template <DType kFrom, DType kTo>
constexpr bool holds() {
  using From = Element<kFrom>;
  using To = Element<kTo>;
  if (kFrom == kTo || kTo == DType::kBool) return false;
  if (From::has_sign && !To::has_sign) return false;
  if (From::floating && !To::floating) return false;
  return To::digits >= From::digits && To::max_exponent >= From::max_exponent;
}

template <DType kFrom, DType kTo>
void widen(std::byte* out, const std::byte* in, std::size_t count) {
  using From = Element<kFrom>;
  using To = Element<kTo>;
  const auto* from = reinterpret_cast<const typename From::Stored*>(in);
  auto* to = reinterpret_cast<typename To::Stored*>(out);
  for (std::size_t i = 0; i < count; ++i) to[i] = To::store(From::load(from[i]));
}

template <DType kFrom, DType kTo>
constexpr WidenFn entry() {
  if constexpr (holds<kFrom, kTo>())
    return widen<kFrom, kTo>;
  else
    return nullptr;
}

template <DType kFrom, int... kTo>
constexpr std::array<WidenFn, kNumDTypes> row(std::integer_sequence<int, kTo...> /*types*/) {
  return {entry<kFrom, static_cast<DType>(kTo)>()...};
}

template <int... kFrom>
constexpr auto table(std::integer_sequence<int, kFrom...> types) {
  return std::array<std::array<WidenFn, kNumDTypes>, kNumDTypes>{row<static_cast<DType>(kFrom)>(types)...};
}

}  // namespace

WidenFn widen_function(DType from, DType to) noexcept {
  static constexpr auto kTable = table(std::make_integer_sequence<int, kNumDTypes>());
  return kTable[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

}  // namespace infeed
