#pragma once
/// libjpeg's headers in the order they need: FILE first, and the build's options before the message codes, whose values
/// depend on them.

// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

namespace infeed {

/// The error where arithmetic decoding is not built in. Debian's ABI (62) names it, Ubuntu's (80) does not.
#if JPEG_LIB_VERSION < 70
inline constexpr int kNoArithmeticDecoder = JERR_ARITH_NOTIMPL;
#else
inline constexpr int kNoArithmeticDecoder = JERR_NOT_COMPILED;
#endif

}  // namespace infeed
