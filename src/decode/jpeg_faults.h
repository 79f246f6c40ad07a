#pragma once
/// What libjpeg's messages mean to a loader.

#include "infeed/base/error.h"

struct jpeg_common_struct;

namespace infeed {

/// The fault of the fatal error that `codec` just met. `input_ended`: bytes behind the end were asked for.
[[nodiscard]] DecodeFault jpeg_error_fault(const jpeg_common_struct& codec, bool input_ended) noexcept;

/// Whether the fatal error means that memory is short.
[[nodiscard]] bool jpeg_error_is_memory(const jpeg_common_struct& codec) noexcept;

/// Whether the warning that `codec` just gave means that pixels are lost, rather than that something was odd.
[[nodiscard]] bool jpeg_warning_loses_data(const jpeg_common_struct& codec) noexcept;

/// The fault of such a warning: the data end early, or they are damaged.
[[nodiscard]] DecodeFault jpeg_warning_fault(const jpeg_common_struct& codec, bool input_ended) noexcept;

}  // namespace infeed
