#pragma once
/// exp, log, sin, cos, tanh, erf in a form that the compiler may vectorise (glibc's libmvec: at most 4 ulp off).

#include <cmath>

// Put before a function with a loop: it is compiled for AVX2 and AVX-512, too, and the program picks one when it starts.
// Not under sanitizers, which are not ready by then.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define INFEED_CLONES [[gnu::target_clones("default", "arch=haswell", "arch=skylake-avx512")]]
#else
#define INFEED_CLONES
#endif

namespace infeed::kernels::fast {

// The library has vector forms of these under other names; the attribute tells the compiler, which -ffast-math would do
// at the price of NaN.
extern "C" {
#if defined(__GLIBC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define INFEED_SIMD __attribute__((simd("notinbranch"), const))
#else
#define INFEED_SIMD
#endif
INFEED_SIMD float expf(float) noexcept;
INFEED_SIMD float logf(float) noexcept;
INFEED_SIMD float sinf(float) noexcept;
INFEED_SIMD float cosf(float) noexcept;
INFEED_SIMD float tanhf(float) noexcept;
INFEED_SIMD float erff(float) noexcept;
#undef INFEED_SIMD
}

inline float exp(float x) noexcept { return fast::expf(x); }
inline float log(float x) noexcept { return fast::logf(x); }
inline float sin(float x) noexcept { return fast::sinf(x); }
inline float cos(float x) noexcept { return fast::cosf(x); }
inline float tanh(float x) noexcept { return fast::tanhf(x); }
inline float erf(float x) noexcept { return fast::erff(x); }

inline double exp(double x) noexcept { return std::exp(x); }
inline double log(double x) noexcept { return std::log(x); }
inline double sin(double x) noexcept { return std::sin(x); }
inline double cos(double x) noexcept { return std::cos(x); }
inline double tanh(double x) noexcept { return std::tanh(x); }
inline double erf(double x) noexcept { return std::erf(x); }

}  // namespace infeed::kernels::fast
