#pragma once
/// Dtype and device of new tensors, and how dtypes of operands meet.

#include <optional>
#include <string>
#include <string_view>

#include "infeed/base/array_view.h"
#include "infeed/base/dtype.h"
#include "infeed/base/export.h"

namespace infeed {

inline constexpr DeviceId kMetaDevice{DeviceType::kMeta, 0};

/// What a factory makes. A DType or a DeviceId alone converts.
struct INFEED_API TensorOptions {
  TensorOptions() = default;
  TensorOptions(DType of) : dtype(of) {}      // NOLINT: implicit on purpose
  TensorOptions(DeviceId on) : device(on) {}  // NOLINT: implicit on purpose
  TensorOptions(DType of, DeviceId on) : dtype(of), device(on) {}

  std::optional<DType> dtype;      ///< default_dtype() unless given
  std::optional<DeviceId> device;  ///< default_device() unless given
  bool requires_grad = false;
};

/// float32 at first. Threads: set it before others start.
[[nodiscard]] INFEED_API DType default_dtype() noexcept;
INFEED_API void set_default_dtype(DType dtype);  ///< TypeError unless a floating-point type
/// The calling thread's; cpu at first.
[[nodiscard]] INFEED_API DeviceId default_device() noexcept;
INFEED_API void set_default_device(DeviceId device);

/// "cpu", "meta", "cuda:1"; throws RuntimeError naming what is known.
[[nodiscard]] INFEED_API DeviceId device_from_string(std::string_view text);
[[nodiscard]] INFEED_API std::string device_name(DeviceId device);
/// "torch.FloatTensor", as PyTorch's messages name a dtype.
[[nodiscard]] INFEED_API std::string_view legacy_name(DType dtype) noexcept;
/// "Float", "Long", "BFloat16", ...
[[nodiscard]] INFEED_API std::string_view scalar_type_name(DType dtype) noexcept;

/// The smallest dtype to which both convert, as PyTorch's table says.
[[nodiscard]] INFEED_API DType promote_types(DType a, DType b) noexcept;
/// Whether an in-place result of `from` may be stored as `to`: the category (bool, integer, float) must not fall.
[[nodiscard]] INFEED_API bool can_cast(DType from, DType to) noexcept;
[[nodiscard]] constexpr bool is_integral(DType dtype, bool with_bool = true) noexcept {
  return !is_floating_point(dtype) && (with_bool || dtype != DType::kBool);
}

}  // namespace infeed
