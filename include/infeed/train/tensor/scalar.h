#pragma once
/// A number of Python's: bool, int or float.

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>

#include "infeed/base/dtype.h"
#include "infeed/base/export.h"

namespace infeed {

class INFEED_API Scalar {
 public:
  template <class N>
  requires std::is_arithmetic_v<N> Scalar(N value)  // NOLINT: implicit on purpose
      : kind_(std::is_same_v<N, bool>       ? Kind::kBool
              : std::is_floating_point_v<N> ? Kind::kFloat
                                            : Kind::kInt) {
    if constexpr (std::is_floating_point_v<N>)
      float_ = static_cast<double>(value);
    else
      int_ = static_cast<std::int64_t>(value);
  }

  [[nodiscard]] bool is_bool() const noexcept { return kind_ == Kind::kBool; }
  [[nodiscard]] bool is_float() const noexcept { return kind_ == Kind::kFloat; }
  [[nodiscard]] double to_double() const noexcept { return is_float() ? float_ : static_cast<double>(int_); }
  [[nodiscard]] std::int64_t to_int() const noexcept { return is_float() ? static_cast<std::int64_t>(float_) : int_; }
  /// bool, int64 or float64: what holds it exactly.
  [[nodiscard]] DType dtype() const noexcept {
    return is_bool() ? DType::kBool : is_float() ? DType::kFloat64 : DType::kInt64;
  }

 private:
  enum class Kind : std::uint8_t { kBool, kInt, kFloat };
  Kind kind_;
  union {
    double float_;
    std::int64_t int_;
  };
};

}  // namespace infeed
