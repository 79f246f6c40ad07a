#pragma once
/// Which instructions the pixel kernels use.

#include <span>
#include <string_view>

namespace infeed {

/// Those of one kind of processor, lowest first: x86-64 has portable, AVX2 and AVX-512, 64-bit ARM portable and NEON.
enum class CpuLevel { kPortable, kNEON, kAVX2, kAVX512 };

/// "portable", "neon", "avx2", "avx512".
[[nodiscard]] std::string_view to_string(CpuLevel level) noexcept;

/// The best level of this processor and build (avx512 asks for F, BW, DQ, VL and VNNI; avx2 for AVX2 and F16C).
[[nodiscard]] CpuLevel best_cpu_level() noexcept;

/// All levels of this processor and build, lowest first.
[[nodiscard]] std::span<const CpuLevel> cpu_levels() noexcept;

/// best_cpu_level(), lowered by the environment variable INFEED_CPU = portable | neon | avx2 | avx512; read once. Throws
/// ConfigError on another value, or on a level that this processor lacks.
[[nodiscard]] CpuLevel cpu_level();

/// What cpu_level() makes of a value of INFEED_CPU; empty: the best.
[[nodiscard]] CpuLevel parse_cpu_level(std::string_view value);

}  // namespace infeed
