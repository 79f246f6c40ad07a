#pragma once
// Which sanitizers this build has: some tests do less under them.

namespace infeed::testing {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitized = true;  // a fork of its shadow memory takes tens of milliseconds
#else
inline constexpr bool kAddressSanitized = false;
#endif

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

/// The shadow memory is larger than any limit of the address space.
inline constexpr bool kSanitized = kAddressSanitized || kThreadSanitized;

}  // namespace infeed::testing
