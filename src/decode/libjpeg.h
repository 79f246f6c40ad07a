#pragma once
/// libjpeg's headers in the order they need: FILE first, and the build's options before the message codes, whose values
/// depend on them.

// clang-format off
#include <cstddef>
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on
