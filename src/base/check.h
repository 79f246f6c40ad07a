#pragma once
/// Broken invariants: what cannot happen unless infeed itself is wrong. Bad input gets an error of its own type.

#include <fmt/format.h>

#include "infeed/base/error.h"

/// INFEED_CHECK(head - tail <= capacity, "ring of {} slots holds {}", capacity, head - tail);
/// Throws Error with the text, the condition and its place. The values are read only on failure.
#define INFEED_CHECK(cond, ...)                                                              \
  do {                                                                                       \
    if (!(cond)) [[unlikely]]                                                                \
      ::infeed::internal::check_failed(#cond, __FILE__, __LINE__, fmt::format(__VA_ARGS__)); \
  } while (false)

namespace infeed::internal {

[[noreturn]] inline void check_failed(const char* condition, std::string_view file, int line, const std::string& text) {
  const auto name = file.substr(file.find_last_of('/') + 1);  // npos + 1 == 0
  throw Error(fmt::format("{} (broken invariant `{}` at {}:{}; please report it)", text, condition, name, line));
}

}  // namespace infeed::internal
